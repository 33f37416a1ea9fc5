"""Language models behind an address: a client of servers that speak OpenAI's form, such as Ollama, vLLM and llama.cpp. Other rooms ask through it."""

OFFERS: dict[str, dict[str, str]] = {}

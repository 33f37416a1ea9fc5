# realmctl for the CPU, with the extras of its commands.
#   docker build -t realmctl .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" realmctl demo
# For CUDA: docker build --build-arg TORCH_INDEX=https://pypi.org/simple -t realmctl . and docker run --gpus all ...

FROM python:3.12-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Without HNSWLIB_NO_NATIVE, hnswlib is compiled for the processor of this machine and dies on an older one.
ENV HNSWLIB_NO_NATIVE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/realmctl
ENV PATH=/opt/realmctl/bin:$PATH
WORKDIR /source
COPY constraints.txt ./
RUN pip install --index-url "$TORCH_INDEX" torch==2.13.0
COPY pyproject.toml README.md LICENSE ./
COPY realmctl realmctl
COPY stages stages
RUN pip install -c constraints.txt ".[bm25,documents,faiss,hnsw,hub,ir,parquet,punkt,ray,remote,report,serve,tensorboard]"

FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 libstdc++6 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/realmctl /opt/realmctl
# HOME is a folder that every user may write, because --user names a user that the image does not know.
ENV PATH=/opt/realmctl/bin:$PATH HOME=/tmp
RUN useradd --uid 1000 realmctl && mkdir /data && chown realmctl /data
USER realmctl
WORKDIR /data
ENTRYPOINT ["realmctl"]
CMD ["--help"]

"""The server as browsers and programs see it: routes, page, guards, token, process."""

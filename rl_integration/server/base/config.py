"""How the server listens, and what it puts up with."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from adjudge.options import Count, Options, Range
from adjudge.rl_integration.watch.hacking import WatchConfig

_SECONDS: Final = Range(gt=0, unit="seconds")


@dataclass(frozen=True, kw_only=True)
class ServerConfig(Options, what="server option"):
    """Where the server listens, who may ask, and how much.

    Attributes:
        host: the address to listen on; only this machine can reach the default.
        port: the port; 0 takes a free one.
        tokens: path of a file with one bearer token a line, as `NAME TOKEN`; the name is whose share of the scorers a
            request counts for.  "": anyone who can reach the port may ask, which is refused unless the address is one
            of this machine's own.
        open_to_all: listen on any address without tokens all the same.
        max_bytes: largest body of a request, in bytes.
        max_samples: most samples of a request.
        max_under_way: most samples that one client may have accepted and not answered; more get 429.
        body_seconds: how long the head of a request may take to arrive, and then its body; also the seconds in which a
            client must have read another KiB each of an answer that waits for it.
        drain_seconds: how long a stopping server waits for what it accepted.
        log_texts: write prompts and responses into the log.
        score_log: path of a file, NAME.jsonl, that gets a line for each score, without texts; "" for none.
        score_log_bytes: size from which on that file becomes the older one, which replaces the one before.
        hide_texts: keep prompts and responses off the page at `/`; who has a token sees everyone's there otherwise.
        history: path of a JSON file that keeps the page's charts of the whole run over a restart; "" for none.
        report: of the run, for the top of the page: an address, which becomes a link, or the path of a file or folder,
            from the root on; "" for none.
        watch: how far the page's watch looks back, and its thresholds.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Range(ge=0, le=65535)] = 8000
    tokens: str = ""
    open_to_all: bool = False
    max_bytes: Count = 64 << 20
    max_samples: Count = 10_000
    max_under_way: Count = 20_000
    body_seconds: Annotated[float, _SECONDS] = 30.0
    drain_seconds: Annotated[float, _SECONDS] = 60.0
    log_texts: bool = False
    score_log: str = ""
    score_log_bytes: Count = 256 << 20
    hide_texts: bool = False
    history: str = ""
    report: str = ""
    watch: WatchConfig = field(default_factory=WatchConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokens and not self.open_to_all and not loopback(self.host):
            raise ValueError(
                f"server option host={self.host!r} lets other machines ask, and there are no tokens; give a file of "
                "them (tokens), or say that anyone may ask (open_to_all)"
            )
        if self.report and not (_web(self.report) or Path(self.report).is_absolute()):
            raise ValueError(
                f"server option report={self.report!r}; give an address that begins with http:// or https://, or a "
                "path from the root on"
            )

    def check_address(self) -> None:
        """Look whether the address can be listened on.

        Raises:
            ValueError: it cannot, because the port is taken or may not be used, or the address is not this machine's.
        """
        try:
            addresses = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            families = {family for family, *_ in addresses}
            for family, kind, number, _, address in addresses:
                if family == socket.AF_INET6 and socket.AF_INET in families:
                    continue  # "localhost" is both, and not every machine has the other
                with socket.socket(family, kind, number) as tried:
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    tried.bind(address)
        except OSError as error:
            raise ValueError(
                f"port {self.port} of {self.host} cannot be listened on: {(error.strerror or str(error)).lower()}; "
                "give another port, or 0 for any that is free"
            ) from error


def _web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:  # an IPv6 address without its end
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def loopback(host: str) -> bool:
    """Return whether an address is one of this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

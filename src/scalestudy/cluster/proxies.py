"""The variables that send gRPC's traffic, and so that of multi-worker runs, through a proxy."""

PROXIES = (
    "http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
)  # fmt: skip

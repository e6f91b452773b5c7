"""srvmod: interactive LLM serving on a company's own GPUs, as code."""

__version__ = "0.1.0"

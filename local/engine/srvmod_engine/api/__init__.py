"""The OpenAI-compatible surface of `vllm serve`, as far as chat and text completions go."""

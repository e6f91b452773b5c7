"""`srvmod bench engine` and `srvmod bench backtest`: what the simulated engine reaches, measured from outside."""

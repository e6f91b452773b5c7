"""What is served: weights on the nodes, engines, the routes to them and who may use them."""

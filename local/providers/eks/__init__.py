"""The `eks` component provider: what pulumi-eks's `eks.Cluster` makes, as far as this product asks for it."""

"""AWS resources: one component per thing a platform engineer would name, documents as pure functions."""

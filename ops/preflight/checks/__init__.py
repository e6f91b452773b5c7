"""One module per thing that an account may lack."""

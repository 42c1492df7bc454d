"""What the protocol is: atom families, noise laws, configurations and exact mechanisms."""

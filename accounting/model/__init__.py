"""The protocol: atom families, noise laws, configurations and exact mechanisms."""

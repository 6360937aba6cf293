"""Parts of `./cedr bench state`."""

"""Nexmark: people, auctions and bids of an auction site, and queries over them."""

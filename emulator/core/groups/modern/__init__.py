"""The part that groups of the newer protocols share: consumer groups (KIP-848) and share groups (KIP-932)."""

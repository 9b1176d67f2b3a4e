"""Latent Gaussians: weights of terms, approximations of their posterior, exact moves with these."""

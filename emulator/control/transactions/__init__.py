"""Operations on transactions, and scripted transactional producers."""

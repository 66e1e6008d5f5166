"""How well run times and requests are predicted, and the training of predictors."""

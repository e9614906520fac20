-- How do the training loss and the validation loss go, step by step, and at which learning rate?
SELECT step, max(sample) AS samples,
       max(value) FILTER (WHERE name = 'loss') AS loss,
       max(value) FILTER (WHERE name = 'validation_loss') AS validation_loss,
       max(value) FILTER (WHERE name = 'learning_rate') AS learning_rate
FROM metrics
WHERE step IS NOT NULL AND rank IS NULL
GROUP BY step
ORDER BY step;

"""What alembic runs to migrate: always on the connection that `database` hands it, inside its transaction."""

from alembic import context

from firecircle.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()

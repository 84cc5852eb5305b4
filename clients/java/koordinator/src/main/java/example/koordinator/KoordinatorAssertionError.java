package example.koordinator;

/** A wait in vain or a failed check. The message has the last events of the group. */
final class KoordinatorAssertionError extends AssertionError {

    KoordinatorAssertionError(String message) {
        super(message);
    }
}

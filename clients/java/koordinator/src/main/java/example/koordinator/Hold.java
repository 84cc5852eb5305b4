package example.koordinator;

import java.time.Duration;

/** Parks matching requests before they are applied, until {@link #release()}, {@link #remove()} or the end of a try. */
public final class Hold extends HoldOperations implements AutoCloseable {

    Hold(Handle owner, String id) {
        super(owner, id);
    }

    /**
     * Waits until a request is parked.
     *
     * @return the first parked request
     */
    public Request waitEntered() {
        return waitEntered(WAIT_LIMIT);
    }

    /**
     * Waits until a request is parked.
     *
     * @param timeout the limit of the wait
     * @return the first parked request
     */
    public Request waitEntered(Duration timeout) {
        var entry = HoldEntry.of(poll("GET", path("/holds/%s/entered", id()), values(), timeout));
        if (entry.deadlock() != null) {
            throw failure(entry.deadlock());
        } else if (entry.first() == null) {
            throw failure("nothing entered within " + seconds(timeout) + " s: " + near());
        }
        return entry.first();
    }

    /** Removes the hold; the requests in it continue. */
    @Override
    public void close() {
        remove();
    }
}

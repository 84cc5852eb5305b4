package example.koordinator;

/** Applies requests of named clients in rounds, one of each client. */
public final class Lockstep extends HoldOperations implements AutoCloseable {

    private int rounds;

    Lockstep(Handle owner, String id) {
        super(owner, id);
    }

    /** Waits for the next complete round. */
    public void waitRound() {
        var values = values();
        values.put("number", ++rounds);
        var round = LockstepRound.of(poll("GET", path("/holds/%s/round", id()), values, WAIT_LIMIT));
        if (!round.ok()) {
            throw failure("round " + rounds + ": none of " + round.missing() + " within " + seconds(WAIT_LIMIT) + " s");
        }
    }

    /** Ends the rounds; the requests in them continue. */
    @Override
    public void close() {
        remove();
    }
}

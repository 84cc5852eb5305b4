package example.koordinator;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** A consumer group: waits, assertions, clock, overrides, rules, holds and puppets. It need not exist yet. */
public final class Group extends GroupOperations {

    Group(Handle owner, String id) {
        super(owner, id);
    }

    /**
     * A part of a test.
     *
     * @param <E> the checked exceptions that it throws
     */
    @FunctionalInterface
    public interface Block<E extends Exception> {

        /**
         * Runs the part.
         *
         * @throws E as the statements of the part do
         */
        void run() throws E;
    }

    /**
     * Returns the state of the group.
     *
     * @return Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if the group does not exist
     */
    public String state() {
        return describe().state();
    }

    /**
     * Returns the number of completed join phases.
     *
     * @return the generation; -1 without a group
     */
    public int generation() {
        return describe().generation();
    }

    /**
     * Returns the partitions of each member.
     *
     * @return partitions by topic, by the {@code group.instance.id} or the member id
     */
    public Map<String, Map<String, List<Integer>>> assignment() {
        var owned = new LinkedHashMap<String, Map<String, List<Integer>>>();
        for (Member each : describe().members()) {
            owned.put(each.instanceId() == null ? each.memberId() : each.instanceId(), each.assignment());
        }
        return owned;
    }

    /**
     * Returns the state and the last events of the group.
     *
     * @return several lines of text
     */
    public String timeline() {
        return timeline(id());
    }

    /**
     * Adds a rule for requests of this group. A rule that never acts fails the test, unless it is optional.
     *
     * @param api the name of the requests, such as OffsetCommit
     * @param action the effect, from {@link Faults}
     * @return the rule
     */
    public Rule addRule(String api, Action action) {
        return addRule(api, action, options -> {});
    }

    /**
     * Adds a rule for requests of this group. A rule that never acts fails the test, unless it is optional.
     *
     * @param api the name of the requests, such as OffsetCommit
     * @param action the effect, from {@link Faults}
     * @param options sets conditions, a trigger, and whether the rule is optional
     * @return the rule
     */
    public Rule addRule(String api, Action action, Consumer<RuleOptions> options) {
        return addRule(api, action, ofThisGroup(), RuleOptions.of(options));
    }

    /**
     * Parks requests of this group before they are applied.
     *
     * @param api the name of the requests, such as OffsetCommit
     * @return the hold, which a try statement removes
     */
    public Hold hold(String api) {
        return hold(api, conditions -> {});
    }

    /**
     * Parks requests of this group before they are applied.
     *
     * @param api the name of the requests, such as OffsetCommit
     * @param conditions sets further conditions
     * @return the hold, which a try statement removes
     */
    public Hold hold(String api, Consumer<Conditions> conditions) {
        return addHold(api, ofThisGroup(), Conditions.of(conditions));
    }

    /**
     * Applies requests of the group in rounds, one of each client.
     *
     * @param api the name of the requests, such as JoinGroup
     * @param clients the client ids
     * @return the rounds, which a try statement ends
     */
    public Lockstep lockstep(String api, String... clients) {
        var values = ofThisGroup();
        values.put("api", api);
        values.put("clients", List.of(clients));
        return new Lockstep(this, call("POST", "/locksteps", values, HoldInfo::of).id());
    }

    /**
     * Expects a rebalance of any cause to begin in the block, and waits after it until the rebalance has completed.
     *
     * @param <E> the checked exceptions of the block
     * @param block the part of the test
     * @return the rebalance
     * @throws E as the block does
     */
    public <E extends Exception> Rebalance expectRebalance(Block<E> block) throws E {
        return expectRebalance(null, block);
    }

    /**
     * Expects a rebalance to begin in the block, and waits after it until the rebalance has completed.
     *
     * @param <E> the checked exceptions of the block
     * @param cause the cause, such as member_join; null for any
     * @param block the part of the test
     * @return the rebalance
     * @throws E as the block does
     */
    public <E extends Exception> Rebalance expectRebalance(String cause, Block<E> block) throws E {
        var values = since(block);
        if (cause != null) {
            values.put("cause", cause);
        }
        var found = verify("expectRebalance", "POST", path("/groups/%s/verify/rebalanced", id()), values, WAIT_LIMIT);
        return Rebalance.of(found.get("rebalance"));
    }

    /**
     * Asserts that no rebalance begins in the block.
     *
     * @param <E> the checked exceptions of the block
     * @param block the part of the test
     * @throws E as the block does
     */
    public <E extends Exception> void assertNoRebalance(Block<E> block) throws E {
        var values = since(block);
        verify("assertNoRebalance", "POST", path("/groups/%s/verify/not_rebalanced", id()), values, Duration.ZERO);
    }

    private <E extends Exception> Map<String, Object> since(Block<E> block) throws E {
        var values = values();
        values.put("since", call("GET", "/trace/position", values(), Json::integer));
        block.run();
        return values;
    }

    private Map<String, Object> ofThisGroup() {
        var match = values();
        match.put("group", exactly(id()));
        return match;
    }
}

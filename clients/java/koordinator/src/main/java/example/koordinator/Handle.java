package example.koordinator;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** A part of a cluster. A refused operation is a {@link KoordinatorException}, a wait in vain an AssertionError. */
abstract class Handle {

    /** The default limit of waits. */
    static final Duration WAIT_LIMIT = Duration.ofSeconds(30);

    /** The longest long poll; a longer wait uses several. */
    private static final Duration POLL_LIMIT = Duration.ofMinutes(1);

    private static final double MILLIS = 1000.0;

    final Control control;
    final String label;

    /** The group whose events explain a failure, or null. */
    final String groupId;

    Handle(Control control, String label, String groupId) {
        this.control = control;
        this.label = label;
        this.groupId = groupId;
    }

    static String label(String kind, Object id) {
        return kind + " \"" + id + "\"";
    }

    static String path(String format, Object... parts) {
        return String.format(format, Arrays.stream(parts).map(Control::quoted).toArray());
    }

    static Map<String, Object> values() {
        return new LinkedHashMap<>();
    }

    static double seconds(Duration duration) {
        return duration.toMillis() / MILLIS;
    }

    static List<List<Object>> rows(Collection<Offset> offsets) {
        return offsets.stream().map(each -> List.<Object>of(each.topic(), each.partition(), each.offset())).toList();
    }

    /** Returns a glob that matches only this text. */
    static String exactly(String text) {
        return text.replaceAll("[*?\\[]", "[$0]");
    }

    /** Performs an operation without a result. */
    void call(String verb, String path, Map<String, Object> values) {
        control.request(label, verb, path, values, Duration.ZERO);
    }

    /** Performs an operation, and returns its result as the reader does. */
    <T> T call(String verb, String path, Map<String, Object> values, Function<Object, T> reader) {
        return reader.apply(result(verb, path, values, Duration.ZERO));
    }

    private Object result(String verb, String path, Map<String, Object> values, Duration limit) {
        String body = control.request(label, verb, path, values, limit);
        return body.isEmpty() ? null : Json.parse(body);
    }

    /** Repeats an operation until its result is true or has {@code ok}, or the limit is over; returns the result. */
    Object poll(String verb, String path, Map<String, Object> values, Duration limit) {
        Instant end = Instant.now().plus(limit);
        while (true) {
            long left = Math.max(0, Math.min(Duration.between(Instant.now(), end).toMillis(), POLL_LIMIT.toMillis()));
            var asked = new LinkedHashMap<>(values);
            asked.put("timeout", left / MILLIS);
            Object result = result(verb, path, asked, Duration.ofMillis(left));
            if (left == 0 || isMet(result) || result instanceof Map<?, ?> entry && entry.get("deadlock") != null) {
                return result;
            }
        }
    }

    private static boolean isMet(Object result) {
        return Boolean.TRUE.equals(result instanceof Map<?, ?> check ? check.get("ok") : result);
    }

    /** Waits until an operation returns true; {@code timeout} is null for the default. */
    void await(String name, String verb, String path, Map<String, Object> values, Duration timeout) {
        Duration limit = timeout == null ? WAIT_LIMIT : timeout;
        if (!isMet(poll(verb, path, values, limit))) {
            throw failure(name + ": not within " + seconds(limit) + " s: " + Json.text(values));
        }
    }

    /** Asserts that the result of an operation is ok, at once or within the timeout, and returns it. */
    Map<?, ?> verify(String name, String verb, String path, Map<String, Object> values, Duration timeout) {
        var result = (Map<?, ?>) poll(verb, path, values, timeout == null ? Duration.ZERO : timeout);
        if (!isMet(result)) {
            throw failure(name + ": " + result.get("message"));
        }
        return result;
    }

    /** Returns the error of a failed assertion, with the last events of the group. */
    AssertionError failure(String message) {
        String events = groupId == null ? "" : "\n" + timeline(groupId).strip();
        return new KoordinatorAssertionError(label + ": " + message + events);
    }

    /** Returns the last events as text: of one group after its state, or of all groups for null. */
    String timeline(String group) {
        var all = Map.of("format", "text");
        var values = group == null ? all : Map.of("format", "text", "group", group);
        return control.request(label, "GET", "/trace", values, Duration.ZERO);
    }

    Rule addRule(String api, Action action, Map<String, Object> match, RuleOptions options) {
        match.putAll(options.match);
        match.put("api", api);
        var rule = new LinkedHashMap<>(options.rule);
        rule.put("match", match);
        rule.put("action", action.values);
        rule.put("trigger", options.trigger);
        return new Rule(this, call("POST", "/rules", Map.of("rule", rule), RuleInfo::of).id());
    }

    Hold addHold(String api, Map<String, Object> match, Conditions conditions) {
        match.putAll(conditions.match);
        match.put("api", api);
        return new Hold(this, call("POST", "/holds", Map.of("match", match), HoldInfo::of).id());
    }
}

package example.koordinator;

import java.util.LinkedHashMap;
import java.util.Map;

/** The effect of a rule, from one of the methods of {@link Faults}. */
public final class Action {

    final Map<String, Object> values = new LinkedHashMap<>();

    Action(String kind) {
        values.put("kind", kind);
    }

    Action with(String name, Object value) {
        values.put(name, value);
        return this;
    }
}

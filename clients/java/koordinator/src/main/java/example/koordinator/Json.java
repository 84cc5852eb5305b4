package example.koordinator;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** JSON as the control API has it: maps, lists, strings, numbers, booleans and null. */
final class Json {

    private static final String ESCAPES = "\"\\/bfnrt";
    private static final String ESCAPED = "\"\\/\b\f\n\r\t";
    private static final Pattern ESCAPABLE = Pattern.compile("[\\x00-\\x1f\"\\\\]");
    private static final int HEXADECIMAL = 16;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads a text: objects as maps, arrays as lists, integers as {@link Long}, other numbers as {@link Double}. */
    static Object parse(String text) {
        var reader = new Json(text);
        Object value = reader.value();
        if (reader.next() != 0) {
            throw reader.unexpected();
        }
        return value;
    }

    private Object value() {
        switch (next()) {
            case '{':
                var members = new LinkedHashMap<String, Object>();
                readAll('}', () -> {
                    String name = string();
                    expect(':');
                    members.put(name, value());
                });
                return members;
            case '[':
                var items = new ArrayList<>();
                readAll(']', () -> items.add(value()));
                return items;
            case '"':
                return string();
            default:
                return scalar();
        }
    }

    /** Returns the next character that is no space, and stays before it; 0 at the end. */
    private char next() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean skips(char character) {
        boolean found = next() == character;
        at += found ? 1 : 0;
        return found;
    }

    private void expect(char character) {
        if (!skips(character)) {
            throw unexpected();
        }
    }

    private IllegalArgumentException unexpected() {
        return new IllegalArgumentException("invalid JSON at character " + at + ": " + text);
    }

    private void readAll(char close, Runnable item) {
        at++;
        if (!skips(close)) {
            do {
                item.run();
            } while (skips(','));
            expect(close);
        }
    }

    private String taken(int count) {
        if (at + count > text.length()) {
            throw unexpected();
        }
        at += count;
        return text.substring(at - count, at);
    }

    private String string() {
        expect('"');
        var found = new StringBuilder();
        for (String each = taken(1); !each.equals("\""); each = taken(1)) {
            String letter = each.equals("\\") ? taken(1) : "";
            if (letter.equals("u")) {
                found.append((char) Integer.parseInt(taken(4), HEXADECIMAL));
            } else {
                found.append(letter.isEmpty() ? each : ESCAPED.charAt(ESCAPES.indexOf(letter)));
            }
        }
        return found.toString();
    }

    private Object scalar() {
        int start = at;
        while (at < text.length() && ",]} \r\n\t".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        if (List.of("true", "false", "null").contains(word)) {
            return word.equals("null") ? null : Boolean.valueOf(word);
        }
        return word.matches("-?\\d+") ? (Object) Long.valueOf(word) : (Object) Double.valueOf(word);
    }

    /** Returns the text of a value; durations are milliseconds, bytes base64, and entries of maps pairs. */
    static String text(Object value) {
        if (value instanceof Map<?, ?> members) {
            return members.entrySet().stream()
                    .map(each -> text(each.getKey().toString()) + ":" + text(each.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
        } else if (value instanceof Collection<?> items) {
            return items.stream().map(Json::text).collect(Collectors.joining(",", "[", "]"));
        } else if (value instanceof Map.Entry<?, ?> pair) {
            return text(Arrays.asList(pair.getKey(), pair.getValue()));
        } else if (value instanceof Offset row) {
            return text(Map.of("topic", row.topic(), "partition", row.partition(), "offset", row.offset()));
        } else if (value instanceof byte[] bytes) {
            return text(Map.of("base64", Base64.getEncoder().encodeToString(bytes)));
        } else if (value instanceof Duration duration) {
            return String.valueOf(duration.toMillis());
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        return '"' + ESCAPABLE.matcher(value.toString()).replaceAll(Json::escaped) + '"';
    }

    private static String escaped(MatchResult found) {
        return String.format("\\\\u%04x", (int) found.group().charAt(0));
    }

    static Integer integer(Object value) {
        return value == null ? null : Math.toIntExact((Long) value);
    }

    static Double number(Object value) {
        return value == null ? null : ((Number) value).doubleValue();
    }

    static byte[] bytes(Object value) {
        return value == null ? null : Base64.getDecoder().decode((String) ((Map<?, ?>) value).get("base64"));
    }

    static <T> List<T> list(Object value, Function<Object, T> reader) {
        return value == null ? null : ((List<?>) value).stream().<T>map(reader).toList();
    }

    static <T> Map<String, T> map(Object value, Function<Object, T> reader) {
        var found = new LinkedHashMap<String, T>();
        ((Map<?, ?>) value).forEach((name, each) -> found.put((String) name, reader.apply(each)));
        return found;
    }
}

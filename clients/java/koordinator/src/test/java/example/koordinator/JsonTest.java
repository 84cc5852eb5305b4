package example.koordinator;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {

    @Test
    void allKindsOfValuesAreRead() {
        var expected = Map.of(
                "text", "a\"\\/\b\f\n\r\tä€😀 ",
                "numbers", List.of(0L, -12L, 9_007_199_254_740_993L, 1.5, 2e3),
                "empty", Map.of(),
                "flags", List.of(true, false));
        String text = "{ \"text\" : \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4€\\ud83d\\ude00 \", \"numbers\": [0, -12,\n"
                + "9007199254740993, 1.5, 2e3], \"empty\": {}, \"flags\": [true, false] }";
        assertEquals(expected, Json.parse(text));
        assertEquals(List.of(), Json.parse("[ ]"));
        assertNull(Json.parse(" null "));
    }

    @Test
    void writtenValuesAreReadAgain() {
        Object value = Arrays.asList("\u0000\u001f\"\\ä😀", null, 1L, 1.5, true, Map.of("a", List.of()));
        assertEquals(value, Json.parse(Json.text(value)));
    }

    @Test
    void theValuesOfOptionsHaveTheFormOfTheApi() {
        assertEquals("1500", Json.text(Duration.ofMillis(1500)));
        assertEquals("{\"base64\":\"AQI=\"}", Json.text(new byte[] {1, 2}));
        assertEquals("[\"key\",null]", Json.text(new java.util.AbstractMap.SimpleEntry<>("key", null)));
    }

    @Test
    void recordsAreMadeOfObjectsAndOfArrays() {
        String text = "[{\"partition\": 1, \"offset\": 3000000000, \"timestamp\": 5, \"key\": null,"
                + "\"value\": {\"base64\": \"AQI=\"}, \"headers\": [[\"h\", {\"base64\": \"\"}]], \"later\": 1}]";
        StoredRecord first = Json.list(Json.parse(text), StoredRecord::of).get(0);
        assertEquals(3_000_000_000L, first.offset());
        assertNull(first.key());
        assertArrayEquals(new byte[] {1, 2}, first.value());
        assertEquals("h", first.headers().get(0).key());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "{", "[1", "[1,]", "\"a", "\"\\", "\"\\u00", "{\"a\" 1}", "{a: 1}", "tru", "-", "1 2", "<"})
    void invalidTextsAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> Json.parse(text));
    }
}

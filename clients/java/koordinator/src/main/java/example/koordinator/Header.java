package example.koordinator;

import java.util.List;

/**
 * A header of a stored record.
 *
 * @param key its name
 * @param value its bytes, or null
 */
public record Header(String key, byte[] value) {

    static Header of(Object json) {
        return new Header((String) ((List<?>) json).get(0), Json.bytes(((List<?>) json).get(1)));
    }
}

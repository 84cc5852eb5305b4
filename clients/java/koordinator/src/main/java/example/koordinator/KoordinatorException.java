package example.koordinator;

/** A refused operation, or a koordinator that does not start or answer. The message has the detail and the remedy. */
public class KoordinatorException extends RuntimeException {

    private final int status;
    private final String title;
    private final String detail;

    KoordinatorException(String message, Throwable cause) {
        this("", 0, "", message, cause);
    }

    KoordinatorException(String label, int status, String title, String detail, Throwable cause) {
        super(label.isEmpty() ? detail : label + ": " + detail, cause);
        this.status = status;
        this.title = title;
        this.detail = detail;
    }

    /**
     * Returns the HTTP status of a refused operation.
     *
     * @return the status, such as 409 or 422; 0 without a response
     */
    public int status() {
        return status;
    }

    /**
     * Returns the title of the problem.
     *
     * @return the title, such as {@code Conflict}; empty without a response
     */
    public String title() {
        return title;
    }

    /**
     * Returns the explanation, with the wrong value and the remedy.
     *
     * @return the explanation
     */
    public String detail() {
        return detail;
    }
}

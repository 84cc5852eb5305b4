import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command-line tools, one after another, in one virtual machine.
 *
 * <p>A line of stdin is a command: the class, the tool's stdin in Base64, and its arguments, separated by tabs. Its
 * answer is a line of stdout: exit status, stdout and stderr, the latter two in Base64.
 */
public final class Tools {
    /** The end of a tool, by its own will. */
    private static final class Exited extends Error {
        private final int status;

        Exited(int status) {
            super("exit " + status, null, false, false);
            this.status = status;
        }
    }

    private Tools() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.Procedure leave = (status, message) -> {
            throw new Exited(status);
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        Exit.setShutdownHookAdder((name, runnable) -> { });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int status = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            System.out.flush();
            System.err.flush();
            answers.println(status + "\t" + encoded(out) + "\t" + encoded(err));
            answers.flush();
        }
    }

    private static int run(String tool, String[] arguments) throws ReflectiveOperationException {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof Exited) {
                    return ((Exited) cause).status;
                }
            }
            error.getCause().printStackTrace();
            return 1;
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}

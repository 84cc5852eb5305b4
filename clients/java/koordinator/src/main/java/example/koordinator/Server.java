package example.koordinator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** A process of {@code koordinator serve}. It ends with its standard input, and so with this process. */
final class Server {

    private static final int START_S = 60;

    /** How long a stop may take before the process is killed. */
    private static final int STOP_S = 5;

    private static final List<String> OPTIONS =
            List.of("serve", "--port", "0", "--control-port", "0", "--stop-with-stdin");

    private static final String REMEDIES = """
            ; choose one of:
              pip install 'koordinator[control]'    with Python 3.11 or newer
              Koordinator.builder().command("uvx", "--from", "koordinator[control]", "koordinator")
              new KoordinatorContainer()    of the artifact koordinator-testcontainers""";

    private static final Executor DAEMON = task -> {
        var thread = new Thread(task, "koordinator");
        thread.setDaemon(true);
        thread.start();
    };

    /** The first line of the server's output. */
    final Map<?, ?> announcement;

    private final Process process;

    Server(List<String> command, List<String> arguments) {
        var words = new ArrayList<>(command);
        words.addAll(OPTIONS);
        words.addAll(arguments);
        try {
            process = new ProcessBuilder(words).start();
        } catch (IOException error) {
            throw new KoordinatorException(error.getMessage() + REMEDIES, error);
        }
        var problems = CompletableFuture.supplyAsync(
                () -> process.errorReader().lines().collect(Collectors.joining("\n")), DAEMON);
        var killer = CompletableFuture.delayedExecutor(START_S, TimeUnit.SECONDS);
        var late = CompletableFuture.runAsync(process::destroyForcibly, killer);
        String line = process.inputReader().lines().findFirst().orElse("");
        if (!late.cancel(false) || !line.startsWith("{")) {
            stop();
            throw new KoordinatorException(String.join(" ", words) + " has not started:\n" + problems.join(), null);
        }
        announcement = (Map<?, ?>) Json.parse(line);
    }

    void stop() {
        try {
            process.getOutputStream().close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } finally {
            process.onExit().completeOnTimeout(process, STOP_S, TimeUnit.SECONDS).join();
            process.destroyForcibly();
        }
    }
}

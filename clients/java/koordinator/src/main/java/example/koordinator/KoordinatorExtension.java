package example.koordinator;

import java.lang.reflect.AnnotatedElement;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * Gives tests a cluster as a parameter of the type {@link Koordinator}. The annotation {@link KoordinatorTest} uses it;
 * for other options or a container register it yourself, in a static field for a cluster that the tests of the class
 * share, in another field for one of each test:
 *
 * <pre>{@code
 * @RegisterExtension
 * static final KoordinatorExtension EXTENSION =
 *         new KoordinatorExtension(Koordinator.builder().topic("orders", 4).kafkaVersion("3.9")::start);
 * }</pre>
 *
 * A shared cluster returns between tests to its content before the first one: topics, records, groups, offsets and
 * clocks; rules, holds, puppets, ACLs and the trace are removed, and its brokers run. When a test fails, the trace is
 * written as {@link Koordinator#writeTrace} does, and its error names the files and shows the last events, as a
 * suppressed exception. A test that passes fails if a rule that is not optional never acted.
 */
public final class KoordinatorExtension
        implements BeforeAllCallback, BeforeEachCallback, ParameterResolver,
                AfterTestExecutionCallback, AfterEachCallback, AfterAllCallback {

    private final Supplier<Koordinator> start;

    /** Creates the extension for the options of {@link KoordinatorTest}, or for a cluster without topics. */
    public KoordinatorExtension() {
        this(null);
    }

    /**
     * Creates the extension for clusters of your own.
     *
     * @param start starts a cluster
     */
    public KoordinatorExtension(Supplier<Koordinator> start) {
        this.start = start;
    }

    /** The last events of a failed test and the path of its trace, below the error of the test. */
    private static final class Timeline extends Exception {

        Timeline(String message) {
            super(message, null, false, false);
        }

        @Override
        public String toString() {
            return getMessage();
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        if (running(context) == null && options(context).scope() == KoordinatorTest.Scope.CLASS) {
            start(context);
        }
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        Koordinator found = running(context);
        if (found == null) {
            start(context);
        } else {
            found.restart();
        }
    }

    @Override
    public void afterTestExecution(ExtensionContext context) {
        context.getExecutionException().ifPresent(failure -> explain(context, failure));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Optional<Throwable> failure = context.getExecutionException();
        try {
            failure.ifPresent(error -> explain(context, error));
            if (failure.isEmpty()) {
                running(context).check();
            }
        } catch (AssertionError error) {
            explain(context, error);
            throw error;
        } finally {
            stop(context);
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        stop(context);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Koordinator.class && running(context) != null;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return running(context);
    }

    /** Writes the trace of a failed test, once, and adds the timeline to its error. */
    private void explain(ExtensionContext context, Throwable failure) {
        boolean isExplained = List.of(failure.getSuppressed()).stream().anyMatch(Timeline.class::isInstance);
        Koordinator found = running(context);
        if (isExplained || found == null || failure instanceof TestAbortedException) {
            return;
        }
        try {
            String page = "full trace: " + found.writeTrace(nameOf(context));
            boolean hasEvents = failure instanceof KoordinatorAssertionError;
            String events = hasEvents ? "" : "\nkoordinator timeline:\n" + found.timeline().strip();
            failure.addSuppressed(new Timeline(page + events));
        } catch (RuntimeException error) {
            failure.addSuppressed(error);
        }
    }

    /** Returns the class and method of a test; of repeated and parameterized tests also the number. */
    private static String nameOf(ExtensionContext context) {
        String name = context.getRequiredTestClass().getSimpleName() + "." + context.getRequiredTestMethod().getName();
        String[] parts = context.getUniqueId().split("invocation:#");
        return parts.length == 1 ? name : name + "-" + parts[parts.length - 1].replace("]", "");
    }

    private ExtensionContext.Store store(ExtensionContext context) {
        return context.getStore(ExtensionContext.Namespace.create(KoordinatorExtension.class, this));
    }

    private Koordinator running(ExtensionContext context) {
        return store(context).get(Koordinator.class, Koordinator.class);
    }

    private void start(ExtensionContext context) {
        Koordinator koordinator = start != null ? start.get() : builder(options(context)).start();
        store(context).put(Koordinator.class, koordinator);
    }

    private void stop(ExtensionContext context) {
        // of this context only: that of a class has another one
        Koordinator own = store(context).remove(Koordinator.class, Koordinator.class);
        if (own != null) {
            own.close();
        }
    }

    private static Koordinator.Builder builder(KoordinatorTest options) {
        var builder = Koordinator.builder();
        List.of(options.topics()).forEach(each -> builder.arguments("--topic", each));
        return builder.arguments(options.arguments());
    }

    /** Returns the nearest annotation: of the method, of the class, or of a class around it. */
    private static KoordinatorTest options(ExtensionContext context) {
        var places = new ArrayList<AnnotatedElement>();
        context.getTestMethod().ifPresent(places::add);
        for (Class<?> each = context.getRequiredTestClass(); each != null; each = each.getEnclosingClass()) {
            places.add(each);
        }
        places.add(Defaults.class);
        return places.stream()
                .flatMap(each -> AnnotationSupport.findAnnotation(each, KoordinatorTest.class).stream())
                .findFirst().orElseThrow();
    }

    /** The options of tests without the annotation. */
    @KoordinatorTest
    private static final class Defaults {}
}

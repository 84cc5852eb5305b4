package example.koordinator;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Starts a cluster for the tests of a class, or for one test. Tests have it as a parameter of the type
 * {@link Koordinator}; {@link KoordinatorExtension} describes its life.
 */
@Documented
@Inherited
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(KoordinatorExtension.class)
public @interface KoordinatorTest {

    /** How many tests share a cluster. */
    enum Scope {
        /** The tests of a class share one, which is reset between them. */
        CLASS,
        /** Each test has its own. */
        METHOD
    }

    /**
     * The topics, with their numbers of partitions: {@code "orders:4"}.
     *
     * @return the topics
     */
    String[] topics() default {};

    /**
     * Further arguments of {@code koordinator serve}: {@code {"--kafka-version", "3.9"}}.
     *
     * @return the arguments
     */
    String[] arguments() default {};

    /**
     * How many tests share the cluster.
     *
     * @return the scope
     */
    Scope scope() default Scope.CLASS;
}

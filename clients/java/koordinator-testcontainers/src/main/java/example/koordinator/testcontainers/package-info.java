/** The container image of koordinator as a module of Testcontainers. */
package example.koordinator.testcontainers;

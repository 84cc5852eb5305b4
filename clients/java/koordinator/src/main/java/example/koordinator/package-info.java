/** Tests of Kafka consumers on koordinator, an emulator of Kafka's group coordinator. */
package example.koordinator;

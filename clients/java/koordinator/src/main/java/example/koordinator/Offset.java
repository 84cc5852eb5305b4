package example.koordinator;

/**
 * The committed offset of a partition.
 *
 * @param topic the name of the topic
 * @param partition the number of the partition
 * @param offset the offset of the next record
 */
public record Offset(String topic, int partition, long offset) {}

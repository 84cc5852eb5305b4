/** Tests of Kafka consumers on koordinator, an emulator of Kafka's group coordinator. */
export { Cluster, Group, Hold, Lockstep } from "./cluster.js";
export { Control, KoordinatorError } from "./handle.js";
export { faults, Node, Producer, Puppet, Rule, Topic, Transaction } from "./operations.js";
export { connectKoordinator, startKoordinator, withKoordinator } from "./start.js";

package org.apache.kafka.connect.runtime.distributed;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Asks Kafka Connect's IncrementalCooperativeAssignor; questions and answers are lines as tests/support/connect_rounds.py has them. */
public class AskedAssignor {
    private static long now = 0;

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        IncrementalCooperativeAssignor assignor = null;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            if (line.startsWith("max ")) {
                assignor = new IncrementalCooperativeAssignor(
                        new LogContext(), new Clock(), Integer.parseInt(line.substring(4)));
            } else {
                System.out.println(answer(assignor, line.split(" ", -1)));
                System.out.flush();
            }
        }
    }

    private static String answer(IncrementalCooperativeAssignor assignor, String[] asked) {
        now = Long.parseLong(asked[0]);
        Map<String, ConnectorsAndTasks> running = new HashMap<>();
        for (String worker : asked[4].split(";")) {
            String[] said = worker.split("=", -1);
            List<String> connectors = new ArrayList<>();
            List<ConnectorTaskId> tasks = new ArrayList<>();
            for (String unit : said[1].isEmpty() ? new String[0] : said[1].split(",")) {
                String[] parts = unit.split("/");
                if (parts[1].equals("-1")) {
                    connectors.add(parts[0]);
                } else {
                    tasks.add(new ConnectorTaskId(parts[0], Integer.parseInt(parts[1])));
                }
            }
            running.put(said[0], new ConnectorsAndTasks.Builder().with(connectors, tasks).build());
        }
        IncrementalCooperativeAssignor.ClusterAssignment assigned = assignor.performTaskAssignment(
                configured(asked[3]), Integer.parseInt(asked[1]), Integer.parseInt(asked[2]), running);
        StringBuilder said = new StringBuilder().append(assignor.delay);
        for (String worker : new TreeSet<>(running.keySet())) {
            said.append(" ").append(worker);
            assigned.newlyAssignedConnectors(worker).forEach(name -> said.append("+").append(name).append("/-1"));
            assigned.newlyAssignedTasks(worker).forEach(id -> said.append("+").append(id.connector() + "/" + id.task()));
            assigned.newlyRevokedConnectors(worker).forEach(name -> said.append("!").append(name).append("/-1"));
            assigned.newlyRevokedTasks(worker).forEach(id -> said.append("!").append(id.connector() + "/" + id.task()));
        }
        return said.toString();
    }

    private static ClusterConfigState configured(String connectors) {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> configs = new HashMap<>();
        Map<ConnectorTaskId, Map<String, String>> tasks = new HashMap<>();
        for (String connector : connectors.isEmpty() ? new String[0] : connectors.split(",")) {
            String[] parts = connector.split(":");
            counts.put(parts[0], Integer.parseInt(parts[1]));
            configs.put(parts[0], Map.of("name", parts[0]));
            for (int task = 0; task < counts.get(parts[0]); task++) {
                tasks.put(new ConnectorTaskId(parts[0], task), Map.of("task", "yes"));
            }
        }
        return new ClusterConfigState(1, null, counts, configs, new HashMap<>(), tasks, new HashMap<>(),
                new HashMap<>(), new HashMap<>(), new HashSet<>(), new HashSet<>());
    }

    private static class Clock implements Time {
        public long milliseconds() {
            return now;
        }

        public long hiResClockMs() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        }
    }
}

package example.koordinator;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The connection to the control API of a cluster. */
final class Control {

    /** How long a response may take, beyond the time of a long poll. */
    private static final Duration RESPONSE_LIMIT = Duration.ofSeconds(30);

    private static final int BAD_REQUEST = 400;
    private static final HttpClient CLIENT = builder().build();

    private final HttpClient client;
    private final String root;
    private final String url;
    private final String token;

    /** {@code caFile} has the authority of a server with https; null for those that Java trusts by default. */
    Control(String url, String token, Path caFile) {
        this.client = caFile == null ? CLIENT : builder().sslContext(trusting(caFile)).build();
        this.root = url.replaceAll("/$", "");
        this.url = root + "/v1/clusters/default";
        this.token = token;
    }

    String root() {
        return root;
    }

    /** Sends a request and returns the body of its response; {@code label} is the subject of an error. */
    String request(String label, String verb, String path, Map<String, ?> values, Duration limit) {
        boolean isQuery = verb.equals("GET");
        var request = HttpRequest.newBuilder(URI.create(url + path + (isQuery ? query(values) : "")))
                .timeout(limit.plus(RESPONSE_LIMIT))
                .method(verb, isQuery ? BodyPublishers.noBody() : BodyPublishers.ofString(Json.text(values)));
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        try {
            var response = client.send(request.build(), BodyHandlers.ofString());
            if (response.statusCode() >= BAD_REQUEST) {
                throw problem(label, response.statusCode(), response.body());
            }
            return response.body();
        } catch (IOException error) {
            throw new KoordinatorException(label + ": koordinator does not answer: " + error, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new KoordinatorException(label + ": interrupted", error);
        }
    }

    private static HttpClient.Builder builder() {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
    }

    private static SSLContext trusting(Path caFile) {
        try (var file = Files.newInputStream(caFile)) {
            var trusted = KeyStore.getInstance(KeyStore.getDefaultType());
            trusted.load(null, null);
            for (var each : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                trusted.setCertificateEntry("authority-" + trusted.size(), each);
            }
            var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(trusted);
            var context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException error) {
            throw new KoordinatorException(caFile + ": must have the authority in PEM: " + error, error);
        }
    }

    private static KoordinatorException problem(String label, int status, String body) {
        try {
            if (Json.parse(body) instanceof Map<?, ?> problem && problem.get("detail") instanceof String detail) {
                return new KoordinatorException(label, status, String.valueOf(problem.get("title")), detail, null);
            }
        } catch (IllegalArgumentException error) {
            // another server's page
        }
        return new KoordinatorException(label, status, "", "HTTP status " + status + ": " + body, null);
    }

    private static String query(Map<String, ?> values) {
        var query = new StringJoiner("&", "?", "").setEmptyValue("");
        values.forEach((name, value) -> {
            Collection<?> items = value instanceof Collection<?> list ? list : List.of(value);
            items.forEach(each -> query.add(name + "=" + quoted(each)));
        });
        return query.toString();
    }

    /** Returns a value as a part of a path or query. */
    static String quoted(Object value) {
        return URLEncoder.encode(String.valueOf(value), StandardCharsets.UTF_8).replace("+", "%20");
    }
}

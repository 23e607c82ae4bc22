import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Ask VERSION METHOD URL [NAME=VALUE] [BODY]: as ask.py, with Java's own client. */
public class Ask {
    public static void main(String[] words) throws Exception {
        var token = String.valueOf(System.getenv("API_TOKEN"));
        var version = HttpClient.Version.valueOf(words[0]);
        var client = HttpClient.newBuilder().version(version).build();
        var request = HttpRequest.newBuilder(URI.create(words[2].replace("$API_TOKEN", token)));
        var body = BodyPublishers.noBody();
        for (int at = 3; at < words.length; at++) {
            var word = words[at].replace("$API_TOKEN", token);
            int equals = word.indexOf('=');
            if (equals > 0 && Character.isUpperCase(word.charAt(0))) {
                request.header(word.substring(0, equals), word.substring(equals + 1));
            } else {
                body = BodyPublishers.ofString(word);
            }
        }
        var answer = client.send(request.method(words[1], body).build(), BodyHandlers.ofString());
        System.out.println(answer.version() + " " + answer.statusCode());
        answer.headers().map().forEach((name, values) -> System.out.println(name + ": " + values));
        System.out.println("\n" + answer.body());
        System.exit(0);
    }
}

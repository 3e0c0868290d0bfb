import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Publishes LookupResults to Lookup Audit with nothing but kafka-clients.
 *
 * <pre>
 * javac -cp 'jars/*' LookupProducer.java
 * java -cp 'jars/*:.' LookupProducer 127.0.0.1:9092 3
 * </pre>
 */
public final class LookupProducer implements AutoCloseable {

  static final String TOPIC = "lookup.results.v1";
  static final String TYPE = "lookup_audit.lookup_result.v1";
  static final String SCHEMA = "https://lookup-audit.dev/schemas/lookup-result/1.0.json";

  private final KafkaProducer<String, String> producer;
  private final String tenant;
  private final String service;
  // One id for each start of the process, and numbers without a hole: so a loss can be seen.
  private final String instance = "java/" + UUID.randomUUID();
  private final AtomicLong sequence = new AtomicLong();

  public LookupProducer(String bootstrapServers, String tenant, String service) {
    this.tenant = tenant;
    this.service = service;
    Properties settings = new Properties();
    settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
    settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
    settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
    // Both are defaults since Kafka 3; an audit should not depend on a default.
    settings.put(ProducerConfig.ACKS_CONFIG, "all");
    settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "true");
    settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "gzip");
    settings.put(ProducerConfig.LINGER_MS_CONFIG, "20");
    // The retrieval never waits longer than this for a broker that is away.
    settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, "2000");
    producer = new KafkaProducer<>(settings);
  }

  /** Sends one lookup; the future completes when every in-sync replica has it. */
  public java.util.concurrent.Future<RecordMetadata> send(
      String query, String level, double distance, String chunkId, String excerpt) {
    String eventId = "evt-" + UUID.randomUUID();
    // In a service both come from the current span: Span.current().getSpanContext().
    String traceId = randomHex(16);
    String spanId = randomHex(8);
    String occurredAt = Instant.now().toString();
    double quality = Math.max(0.0, Math.min(1.0, 1.0 - distance / 2.0));
    String event =
        """
        {
          "schema_version": "1.0",
          "event_id": %s,
          "occurred_at": %s,
          "tenant": %s,
          "service": {"name": %s, "instance_id": %s, "sequence": %d},
          "trace_id": %s,
          "span_id": %s,
          "query": {"text": %s},
          "mode": "dense",
          "model_version": "minilm@2",
          "top_k": 4,
          "thresholds": {"highly_relevant_threshold": 0.75, "reference_threshold": 0.5},
          "candidates": [{
            "chunk_id": %s,
            "original_rank": 1,
            "dense_distance": %s,
            "quality_score": %s,
            "excerpt": %s,
            "kept": true
          }],
          "quality_score": %s,
          "relevance_level": %s,
          "evidence_status": "EVIDENCE_FOUND",
          "returned_count": 1
        }
        """
            .formatted(
                json(eventId), json(occurredAt), json(tenant), json(service), json(instance),
                sequence.incrementAndGet(), json(traceId), json(spanId), json(query), json(chunkId),
                Double.toString(distance), Double.toString(quality), json(excerpt),
                Double.toString(quality), json(level));

    // The trace is the key: all of one request stays in one partition.
    ProducerRecord<String, String> record = new ProducerRecord<>(TOPIC, traceId, event);
    Map.of(
            "content-type", "application/json",
            "ce_specversion", "1.0",
            "ce_id", eventId,
            "ce_source", "urn:lookup-audit:" + tenant + ":" + service,
            "ce_type", TYPE,
            "ce_time", occurredAt,
            "ce_subject", traceId,
            "ce_dataschema", SCHEMA,
            "traceparent", "00-" + traceId + "-" + spanId + "-01")
        .forEach((name, value) -> add(record.headers(), name, value));
    return producer.send(
        record,
        (metadata, error) -> {
          if (error != null) {
            // Count it and go on: an audit must never break the retrieval.
            System.err.println("lookup " + eventId + " was not audited: " + error);
          }
        });
  }

  private static void add(Headers headers, String name, String value) {
    headers.add(name, value.getBytes(StandardCharsets.UTF_8));
  }

  private static String randomHex(int bytes) {
    byte[] id = new byte[bytes];
    ThreadLocalRandom.current().nextBytes(id);
    id[0] |= 1; // never all zeros, which would be no id
    return HexFormat.of().formatHex(id);
  }

  /** A JSON string; a service will rather use the JSON library it has. */
  static String json(String text) {
    if (text == null) {
      return "null";
    }
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  /** Waits until everything sent has its answer. */
  @Override
  public void close() {
    producer.close();
  }

  public static void main(String[] arguments) throws InterruptedException, ExecutionException {
    int count = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1;
    try (LookupProducer lookups = new LookupProducer(arguments[0], "acme", "kb-java")) {
      for (int i = 1; i <= count; i++) {
        RecordMetadata stored =
            lookups
                .send("默认超时是多少 \"" + i + "\"", "PRECISE", 0.41, "doc-" + i + "#0", "Thirty\nseconds.")
                .get();
        System.out.println(stored.topic() + "/" + stored.partition() + "/" + stored.offset());
      }
    }
  }
}

package smoke;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import net.ravendb.client.documents.BulkInsertOperation;
import net.ravendb.client.documents.CloseableIterator;
import net.ravendb.client.documents.DocumentStore;
import net.ravendb.client.documents.Lazy;
import net.ravendb.client.documents.changes.DocumentChange;
import net.ravendb.client.documents.changes.IDatabaseChanges;
import net.ravendb.client.documents.changes.Observers;
import net.ravendb.client.documents.commands.StreamResult;
import net.ravendb.client.documents.operations.GetStatisticsOperation;
import net.ravendb.client.documents.operations.compareExchange.CompareExchangeResult;
import net.ravendb.client.documents.operations.compareExchange.PutCompareExchangeValueOperation;
import net.ravendb.client.documents.session.IDocumentSession;
import net.ravendb.client.documents.session.SessionOptions;
import net.ravendb.client.documents.session.TransactionMode;
import net.ravendb.client.exceptions.ConcurrencyException;
import net.ravendb.client.serverwide.DatabaseRecord;
import net.ravendb.client.serverwide.operations.CreateDatabaseOperation;
import net.ravendb.client.serverwide.operations.DeleteDatabasesOperation;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The paths every application of the JVM client takes: one case each, in a database of its own. */
class SmokeTest {
    public static class User {
        public String name;
        public int age;
        public String company;

        public User() {
        }

        User(String name, int age) {
            this.name = name;
            this.age = age;
        }
    }

    private DocumentStore store;

    @BeforeEach
    void create() {
        String name = "java-" + UUID.randomUUID();
        store = new DocumentStore(System.getenv("CLIENTS_URL"), name);
        store.initialize();
        store.maintenance().server().send(new CreateDatabaseOperation(new DatabaseRecord(name)));
    }

    @AfterEach
    void drop() {
        store.maintenance().server().send(new DeleteDatabasesOperation(store.getDatabase(), true));
        store.close();
    }

    private void save(String id, User user) {
        try (IDocumentSession session = store.openSession()) {
            session.store(user, id);
            session.saveChanges();
        }
    }

    @Test
    void storeLoadChangeDelete() {
        save("users/1", new User("Ann", 30));
        try (IDocumentSession session = store.openSession()) {
            session.load(User.class, "users/1").age = 31;
            session.saveChanges();
        }
        try (IDocumentSession session = store.openSession()) {
            User user = session.load(User.class, "users/1");
            assertEquals(31, user.age);
            session.delete(user);
            session.saveChanges();
        }
        try (IDocumentSession session = store.openSession()) {
            assertNull(session.load(User.class, "users/1"));
        }
    }

    @Test
    void idsByTheClient() {
        try (IDocumentSession session = store.openSession()) {
            User user = new User("Ann", 30);
            session.store(user);
            session.saveChanges();
            assertEquals("users/1-A", session.advanced().getDocumentId(user));
        }
    }

    @Test
    void manyWithSomeMissing() {
        save("users/1", new User("Ann", 30));
        save("users/2", new User("Bob", 31));
        try (IDocumentSession session = store.openSession()) {
            Map<String, User> users = session.load(User.class, "users/2", "users/none", "users/1");
            assertEquals("Bob", users.get("users/2").name);
            assertNull(users.get("users/none"));
        }
    }

    @Test
    void includes() {
        User ann = new User("Ann", 30);
        ann.company = "users/2";
        save("users/1", ann);
        save("users/2", new User("Bob", 31));
        try (IDocumentSession session = store.openSession()) {
            User user = session.include("company").load(User.class, "users/1");
            assertEquals("Bob", session.load(User.class, user.company).name);
            assertEquals(1, session.advanced().getNumberOfRequests());
        }
    }

    @Test
    void byPrefix() {
        for (int n = 0; n < 5; n++) {
            save("users/" + n, new User("u" + n, n));
        }
        try (IDocumentSession session = store.openSession()) {
            User[] users = session.advanced().loadStartingWith(User.class, "users/", "1|2|3", 1, 1);
            assertEquals(1, users.length);
            assertEquals("u2", users[0].name);
        }
    }

    @Test
    void optimisticConcurrency() {
        save("users/1", new User("Ann", 30));
        try (IDocumentSession session = store.openSession()) {
            session.advanced().setUseOptimisticConcurrency(true);
            User user = session.load(User.class, "users/1");
            save("users/1", new User("Bea", 30));
            user.name = "never";
            ConcurrencyException refused = assertThrows(ConcurrencyException.class, session::saveChanges);
            assertNotNull(refused.getActualChangeVector());
        }
    }

    @Test
    void lazily() {
        save("users/1", new User("Ann", 30));
        try (IDocumentSession session = store.openSession()) {
            Lazy<User> one = session.advanced().lazily().load(User.class, "users/1");
            Lazy<User> missing = session.advanced().lazily().load(User.class, "users/none");
            session.advanced().eagerly().executeAllPendingLazyOperations();
            assertEquals("Ann", one.getValue().name);
            assertNull(missing.getValue());
            assertEquals(1, session.advanced().getNumberOfRequests());
        }
    }

    @Test
    void bulkInsertAndStream() {
        try (BulkInsertOperation bulk = store.bulkInsert()) {
            for (int n = 0; n < 1_000; n++) {
                bulk.store(new User("u" + n, n), String.format("users/%04d", n));
            }
        }
        assertEquals(1_000, store.maintenance().send(new GetStatisticsOperation()).getCountOfDocuments());
        int expected = 0;
        try (IDocumentSession session = store.openSession();
                CloseableIterator<StreamResult<User>> stream = session.advanced().stream(User.class, "users/")) {
            while (stream.hasNext()) {
                assertEquals(expected++, stream.next().getDocument().age);
            }
        }
        assertEquals(1_000, expected);
    }

    @Test
    void compareExchangeInAClusterWideSession() {
        SessionOptions options = new SessionOptions();
        options.setTransactionMode(TransactionMode.CLUSTER_WIDE);
        try (IDocumentSession session = store.openSession(options)) {
            session.store(new User("Ann", 30), "users/1");
            session.advanced().clusterTransaction().createCompareExchangeValue("names/ann", "users/1");
            session.saveChanges();
        }
        CompareExchangeResult<String> taken =
            store.operations().send(new PutCompareExchangeValueOperation<>("names/ann", "users/2", 0));
        assertTrue(!taken.isSuccessful());
        assertEquals("users/1", taken.getValue());
    }

    @Test
    void changes() throws Exception {
        BlockingQueue<DocumentChange> seen = new LinkedBlockingQueue<>();
        try (IDatabaseChanges changes = store.changes()) {
            changes.ensureConnectedNow();
            try (var subscription = changes.forDocument("users/1").subscribe(Observers.create(seen::add))) {
                // This client does not tell when the server has confirmed, so the document is saved until its change is seen.
                DocumentChange change = null;
                for (int n = 0; change == null && n < 60; n++) {
                    save("users/1", new User("Ann", n));
                    change = seen.poll(1, TimeUnit.SECONDS);
                }
                assertNotNull(change);
                assertEquals("users/1", change.getId());
            }
        }
    }

    @Test
    void unicode() {
        Map<String, Object> texts = new HashMap<>();
        texts.put("text", "é 中文 🦜 \"\\\n");
        try (IDocumentSession session = store.openSession()) {
            session.store(texts, "texts/é 🦜");
            session.saveChanges();
        }
        try (IDocumentSession session = store.openSession()) {
            assertEquals(texts.get("text"), session.load(Map.class, "texts/é 🦜").get("text"));
        }
    }
}

package robustness

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
)

// killsPerStore is how often the process of one history is killed. Each kill
// leaves requests whose outcome no client knows, and with more of them checking
// the history takes hours (etcd's own scenarios kill once).
const killsPerStore = 2

// profile is a kind of traffic that etcd tests itself with.
type profile struct {
	name    string
	traffic traffic.Traffic
	rate    *traffic.KeyValue
}

var profiles = []profile{
	{"EtcdPut", traffic.EtcdPut, &traffic.KeyValueHigh},
	{"EtcdPutDeleteLease", traffic.EtcdPutDeleteLease, &traffic.KeyValueMedium},
	{"EtcdDelete", traffic.EtcdDelete, &traffic.KeyValueMedium},
	{"Kubernetes", traffic.Kubernetes, &traffic.KeyValueHigh},
	{"KubernetesCreateDelete", traffic.KubernetesCreateDelete, &traffic.KeyValueMedium},
}

func TestMain(m *testing.M) {
	// etcd's 200 ms are too few on a machine that does other things, and a
	// client that waits longer for a server that is being started leaves fewer
	// requests of unknown outcome.
	traffic.RequestTimeout = time.Second
	os.Exit(m.Run())
}

func TestSQLiteKeepsEtcdsPromisesWhileItIsKilled(t *testing.T) {
	testProfiles(t, []string{"EtcdPutDeleteLease", "Kubernetes"}, func(t *testing.T, dataDir string) database {
		return database{spec: "sqlite", audit: sqliteAudit{dataDir}}
	})
}

func TestPostgresKeepsEtcdsPromisesWhileItIsKilled(t *testing.T) {
	testProfiles(t, []string{"EtcdPut", "KubernetesCreateDelete"}, func(t *testing.T, _ string) database {
		server := newPostgresServer(t)
		return database{spec: server.dsn(), audit: postgresAudit{server.dsn()}, kill: func(ctx context.Context) error {
			server.kill()
			return server.start(ctx)
		}}
	})
}

// database is an empty one to test with. kill, where it is set, kills its
// server and starts it again: every second kill of a history is one.
type database struct {
	spec  string
	audit audit
	kill  func(context.Context) error
}

// testProfiles runs every kind of traffic; with -short only those named.
func testProfiles(t *testing.T, short []string, newDatabase func(t *testing.T, dataDir string) database) {
	seed := seedFromEnvironment(t)
	kills := killsFromEnvironment(t)
	for i, profile := range profiles {
		if testing.Short() && !slices.Contains(short, profile.name) {
			continue
		}
		for round := range (kills + killsPerStore - 1) / killsPerStore {
			t.Run(fmt.Sprintf("%s/%d", profile.name, round), func(t *testing.T) {
				// The traffic draws from the global source, the kills from one
				// of their own, which the traffic's pace does not disturb.
				runSeed := seed + int64(round*len(profiles)+i)
				//lint:ignore SA1019 the only way to repeat draws from the global source, see go.mod
				rand.Seed(runSeed)
				dataDir := t.TempDir()
				testProfile(t, dataDir, newDatabase(t, dataDir), profile.traffic, traffic.Profile{
					KeyValue: profile.rate, Watch: &traffic.WatchDefault, Compaction: &traffic.CompactionDefault,
				}, rand.New(rand.NewSource(runSeed)))
			})
		}
	}
}

func testProfile(t *testing.T, dataDir string, db database, kind traffic.Traffic, profile traffic.Profile, random *rand.Rand) {
	server := newProcess(t, dataDir, db.spec)
	if err := server.start(t.Context()); err != nil { // makes the tables
		t.Fatal(err)
	}
	server.kill()
	if err := db.audit.install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	lg := zaptest.NewLogger(t, zaptest.Level(zapcore.ErrorLevel))
	begin := time.Now()
	reports, err := simulate(t.Context(), lg, server.url, kind, profile, func(ctx context.Context) error {
		// etcd's scenarios give traffic time to reach its pace, too.
		if err := awaitWrites(ctx, server.url, 200); err != nil {
			return err
		}
		first := random.Intn(2)
		for i := range killsPerStore {
			pause := 200*time.Millisecond + time.Duration(random.Int63n(int64(time.Second)))
			atDatabase := db.kill != nil && (first+i)%2 == 0
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
			kill := server.restart
			if atDatabase {
				kill = db.kill
			}
			if err := kill(ctx); err != nil {
				return fmt.Errorf("kill and start again: %w", err)
			}
		}
		return awaitWrites(ctx, server.url, 200)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkTraffic(t, reports, time.Since(begin))
	server.kill()
	check(t, lg, dataDir, db.audit, reports, kind.ExpectUniqueRevision())
}

// check has the validators judge, and keeps what they judged when they object.
func check(t *testing.T, lg *zap.Logger, dataDir string, history audit, reports []report.ClientReport, unique bool) {
	t.Helper()
	rows, err := history.rows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	persisted, err := persistedRequests(rows)
	if err != nil {
		t.Fatalf("what was stored: %v", err)
	}
	reports, refused := withoutRefused(reports)
	t.Logf("%d changes and compactions were stored, %d requests were refused", len(persisted), refused)
	result := validate.ValidateAndReturnVisualize(lg, validate.Config{ExpectRevisionUnique: unique}, reports, persisted, 5*time.Minute)
	if err := result.Error(); err != nil {
		t.Errorf("%v", err)
		keep, mkdirErr := os.MkdirTemp("", "taskctl-robustness-report-")
		if mkdirErr != nil {
			t.Fatal(mkdirErr)
		}
		saved, saveErr := report.NewTestReport(lg, filepath.Join(keep, "report"), map[string]string{"taskctl": dataDir}, nil)
		if saveErr != nil {
			t.Fatal(saveErr)
		}
		saved.SetClientReports(reports)
		t.Logf("the report is kept in %s (saving it: %v)", keep, saved.SaveEtcdData())
	}
}

func seedFromEnvironment(t *testing.T) int64 {
	t.Helper()
	seed := time.Now().UnixNano()
	if text := os.Getenv("TASKCTL_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("TASKCTL_TEST_SEED: %v", err)
		}
	}
	t.Logf("repeat with TASKCTL_TEST_SEED=%d", seed)
	return seed
}

func killsFromEnvironment(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TASKCTL_TEST_KILLS")
	if text == "" {
		return killsPerStore
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("TASKCTL_TEST_KILLS: %v", err)
	}
	return kills
}

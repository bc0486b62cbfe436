package embedded

import (
	"io"
	_ "unsafe" // for go:linkname

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory" // has the variable below
)

// etcdClientLogger is where the API server's etcd clients log: to stderr,
// through a private variable that the package's init sets, without an option
// (ETCD_CLIENT_DEBUG is read, and comes to the same level whatever it says).
// A few lines are written at each stop, for requests that are cut then.
//
//go:linkname etcdClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcdClientLogger *zap.Logger

// captureEtcdClientLog sends the etcd clients' warnings to w, one JSON object
// a line.
func captureEtcdClientLog(w io.Writer) (restore func()) {
	before := etcdClientLogger
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), zap.WarnLevel)
	etcdClientLogger = zap.New(core).Named("etcd-client")
	return func() { etcdClientLogger = before }
}

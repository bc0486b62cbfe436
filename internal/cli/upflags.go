package cli

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/taskctl-dev/taskctl/internal/config"
	"github.com/taskctl-dev/taskctl/internal/kubeconfig"
	"github.com/taskctl-dev/taskctl/internal/supervisor"
)

// defaultWait is how long a start may take. Measured starts take 3 s; a cold
// disk and a busy machine have been seen to take ten times that.
const defaultWait = 2 * time.Minute

// applianceFlags are the flags that say what an appliance is like; up and ci
// have them.
func applianceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "configuration `FILE`; flags win over it"},
		&cli.StringFlag{Name: "cluster", Value: auto, EnvVars: []string{"TASKCTL_CLUSTER"}, Usage: "`DRIVER` of the cluster: auto, embedded or kind (with a node; needs Docker)"},
		&cli.StringFlag{Name: "kind-image", EnvVars: []string{"TASKCTL_KIND_IMAGE"}, Usage: "node `IMAGE` for --cluster kind", DefaultText: "one that is there, else kind's own"},
		storageFlag("as before, or " + supervisor.DefaultText),
		topologyFlag(),
		&cli.IntFlag{Name: "port", Usage: "`PORT` of the API server", DefaultText: "a free one, kept across restarts"},
		&cli.DurationFlag{Name: "wait", Value: defaultWait, Usage: "`LIMIT` for the start"},
		&cli.StringFlag{Name: "without", Usage: "leave out `COMPONENTS` (with commas: " + strings.Join(supervisor.Removable(), ", ") + "), to run them from elsewhere"},
		&cli.DurationFlag{Name: "certificate-lifetime", Hidden: true, Usage: "`LIFETIME` of certificates, for tests of their renewal"},
	}
}

// storageFlag is --storage; its value may hold a password, which stands in no
// argument list when it comes from the environment.
func storageFlag(defaultText string) cli.Flag {
	return &cli.StringFlag{
		Name: "storage", EnvVars: []string{storageVariable}, DefaultText: defaultText,
		Usage: "where objects are stored: `SPEC` is etcd, sqlite, sqlite://FILE, postgres://USER@HOST/DATABASE, mysql://USER@tcp(HOST:3306)/DATABASE or https://HOST:2379",
	}
}

const storageVariable = "TASKCTL_STORAGE"

// upFlags are the flags of up alone.
func upFlags() []cli.Flag {
	return append(applianceFlags(),
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "run in the background; return when ready"},
		&cli.BoolFlag{Name: "ephemeral", Usage: "delete the data folder when the appliance stops"},
		&cli.StringFlag{Name: "kubeconfig", Usage: "merge the context into `FILE`", DefaultText: "KUBECONFIG's first file, else ~/.kube/config"},
		&cli.BoolFlag{Name: "switch-context", Value: true, Usage: "make it the current context"},
		&cli.BoolFlag{Name: "recreate", Usage: "start anew: with --cluster embedded without the data, with --cluster kind with a new node and the same data"},
	)
}

// upConfig is what an appliance is started with.
type upConfig struct {
	common
	options   supervisor.Options // without Folder and OnEvent
	spec      string             // the --storage SPEC; "" if there is none
	notices   []string           // what people should know of the flags
	ephemeral bool
	recreate  bool
	cluster   string // the driver that is asked for: auto, embedded or kind
	keepLogs  string // where log files are copied to at the end; "" nowhere

	kubeconfigGiven bool // by the flag
}

// applianceConfig reads the flags of applianceFlags.
func applianceConfig(c *cli.Context, values common) (upConfig, error) {
	up := upConfig{common: values, spec: c.String("storage"), options: supervisor.Options{
		Name:                values.name,
		Storage:             config.FromSpec(c.String("storage")),
		Port:                c.Int("port"),
		Wait:                c.Duration("wait"),
		Verbosity:           values.verbosity,
		CertificateLifetime: c.Duration("certificate-lifetime"),
	}}
	up.cluster, up.options.Kind.Image = c.String("cluster"), c.String("kind-image")
	if err := checkDriver(up.cluster); err != nil {
		return up, err
	}
	if err := readConfigFile(c, &up); err != nil {
		return up, err
	}
	if err := supervisor.CheckStorage(up.options.Storage); err != nil {
		return up, usageError("%w", err)
	}
	if port := up.options.Port; port < 0 || port > 65535 {
		return up, usageError("the port %d does not exist: use --port with 1 to 65535, or leave it out for a free one", port)
	}
	if up.options.Wait <= 0 {
		return up, usageError("the limit of --wait must be longer than 0, like 2m")
	}
	if err := readWithout(c.String("without"), &up.options); err != nil {
		return up, err
	}
	return up, nil
}

func readWithout(list string, options *supervisor.Options) error {
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(options.Without, name) {
			continue
		}
		options.Without = append(options.Without, name)
	}
	slices.Sort(options.Without)
	if err := supervisor.CheckWithout(options.Without); err != nil {
		return usageError("%w; see --without", err)
	}
	return nil
}

func (p *program) upConfig(c *cli.Context) (upConfig, error) {
	values, err := p.common(c)
	if err != nil {
		return upConfig{}, err
	}
	config, err := applianceConfig(c, values)
	if err != nil {
		return config, err
	}
	for _, notice := range config.notices {
		p.printer(values).message("note: %s", notice)
	}
	config.ephemeral, config.recreate = c.Bool("ephemeral"), c.Bool("recreate")
	config.options.SwitchContext = c.Bool("switch-context")
	if file := c.String("kubeconfig"); file != "" {
		config.kubeconfigGiven = true
		config.options.Kubeconfig, err = filepath.Abs(file)
	} else {
		config.options.Kubeconfig, err = kubeconfig.DefaultFile(p.env.Getenv)
	}
	config.options.Settings = config.settings()
	return config, err
}

// settings describe a run by flag name, for a later up to compare with. What a
// flag leaves open is not among them.
func (c upConfig) settings() map[string]string {
	settings := map[string]string{
		"ephemeral":  strconv.FormatBool(c.ephemeral),
		"kubeconfig": c.options.Kubeconfig,
		"without":    strings.Join(c.options.Without, ","),
		// From the file; named as people find it there.
		"cluster.apiServerArgs": strings.Join(flagWords(c.options.APIServerArgs), " "),
	}
	if !c.options.Storage.IsZero() {
		settings["storage"] = c.options.Storage.String()
	}
	if c.cluster != auto {
		settings["cluster"] = c.cluster
	}
	if c.options.Kind.Image != "" {
		settings["kind-image"] = c.options.Kind.Image
	}
	if c.options.Port != 0 {
		settings["port"] = strconv.Itoa(c.options.Port)
	}
	return settings
}

// asked are the settings in which a running appliance may differ from this up:
// the user's usual kubeconfig is none of them.
func (c upConfig) asked() map[string]string {
	asked := c.settings()
	if !c.kubeconfigGiven {
		delete(asked, "kubeconfig")
	}
	return asked
}

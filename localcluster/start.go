// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kumiki-scheduler/kumiki/localcluster/controllers"
	"github.com/kumiki-scheduler/kumiki/localcluster/fakenodes"
	"github.com/kumiki-scheduler/kumiki/localcluster/nodespec"
	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// startFlags are the flags of start.
type startFlags struct {
	nodeFlags
	dataDir         string
	kubeconfigOut   string
	featureGates    string
	runtimeConfig   string
	apiServerArgs   []string
	controllersArgs []string
	fsync           bool
	restartChildren bool
	readyTimeout    time.Duration
}

// nodeFlags are the flags that are handed on to role nodes.
type nodeFlags struct {
	nodes      int
	nodeSpec   string
	podStages  string
	admission  bool
	heartbeats bool
}

func (f *nodeFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&f.nodes, "nodes", 10, "number of nodes of the default shape: 8 cores, 32Gi, three zones")
	fs.StringVar(&f.nodeSpec, "node-spec", "", "YAML `file` that describes the nodes, instead of --nodes")
	fs.StringVar(&f.podStages, "pod-stages", "fast", "life of pods: fast, realistic (start time and grace periods) or none (they stay as bound, unless refused)")
	fs.BoolVar(&f.admission, "kubelet-admission", true, "fail a bound pod that does not fit its node, as a kubelet does")
	fs.BoolVar(&f.heartbeats, "heartbeats", true, "renew node leases; off saves writes, and nodes never become NotReady")
}

// args are the flags for the child; the supervisor adds the spec.
func (f *nodeFlags) args() []string {
	return []string{
		"--nodes=" + strconv.Itoa(f.nodes),
		"--pod-stages=" + f.podStages,
		"--kubelet-admission=" + strconv.FormatBool(f.admission),
		"--heartbeats=" + strconv.FormatBool(f.heartbeats),
	}
}

// spec reads the node spec, and gives its text when it came from a file.
func (f *nodeFlags) spec() (nodespec.Spec, []byte, error) {
	if f.nodeSpec == "" {
		s := nodespec.Default(f.nodes)
		return s, nil, s.Validate()
	}
	raw, err := os.ReadFile(f.nodeSpec)
	if err != nil {
		return nodespec.Spec{}, nil, fmt.Errorf("read --node-spec: %w", err)
	}
	s, err := nodespec.Parse(raw)
	if err != nil {
		return nodespec.Spec{}, nil, fmt.Errorf("%s: %w", f.nodeSpec, err)
	}
	return s, raw, nil
}

const (
	shortestLease = 40 * time.Second
	// leasesPerSecond bounds the writes of node leases of a large cluster: a
	// lease is renewed four times in its life.
	leasesPerSecond = 100
	// silence is how much longer than a lease a node may be silent.
	silence = 10 * time.Second
	// forever is the silence that is allowed without heartbeats.
	forever = 10000 * time.Hour
)

// lease is the duration of node leases: a kubelet's 40 s, and longer when more
// nodes would write more than leasesPerSecond. 0 means no heartbeats.
func (f *nodeFlags) lease(nodes int) time.Duration {
	if !f.heartbeats {
		return 0
	}
	return max(shortestLease, time.Duration(nodes*4/leasesPerSecond)*time.Second)
}

func (f *nodeFlags) monitorGrace(nodes int) time.Duration {
	if lease := f.lease(nodes); lease > 0 {
		return lease + silence
	}
	return forever
}

// dataDirEnv picks a cluster when --data-dir does not.
const dataDirEnv = "KUMIKI_LOCALCLUSTER"

func startCommand(name string) *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   name,
		Short: "Run a Kubernetes control plane with fake nodes until SIGINT or SIGTERM",
		Long: `Run a Kubernetes control plane with fake nodes until SIGINT or SIGTERM.

When the cluster is ready one line of JSON on standard output names its
kubeconfig files; progress goes to standard error. There is no scheduler.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return start(&f) },
	}
	fs := cmd.Flags()
	f.nodeFlags.add(fs)
	fs.StringVar(&f.dataDir, "data-dir", os.Getenv(dataDirEnv), "`directory` that keeps the cluster; empty: a temporary one, removed at the end (env "+dataDirEnv+")")
	fs.StringVar(&f.kubeconfigOut, "kubeconfig-out", "", "`file` for a copy of the admin kubeconfig, removed at the end")
	fs.StringVar(&f.featureGates, "feature-gates", "", "feature gates of API server and controllers: A=true,B=false")
	fs.StringVar(&f.runtimeConfig, "runtime-config", "", "APIs to switch on or off: scheduling.k8s.io/v1beta1=true")
	fs.StringArrayVar(&f.apiServerArgs, "apiserver-arg", nil, "one more `flag` for kube-apiserver, may be repeated")
	fs.StringArrayVar(&f.controllersArgs, "controllers-arg", nil, "one more `flag` for the controllers, may be repeated")
	fs.BoolVar(&f.fsync, "fsync", true, "let etcd wait for the disk; never done in a temporary directory")
	fs.BoolVar(&f.restartChildren, "restart-children", false, "start a child again when it ends on its own")
	fs.DurationVar(&f.readyTimeout, "ready-timeout", 2*time.Minute, "give up when a child is not ready after this time")
	return quiet(cmd)
}

func start(f *startFlags) error {
	spec, raw, err := f.spec()
	if err != nil {
		return coded(exitUsage, err)
	}
	if _, err := fakenodes.StagesByName(f.podStages); err != nil {
		return coded(exitUsage, err)
	}
	if err := controllers.Check(f.controllersArgs); err != nil {
		return coded(exitUsage, fmt.Errorf("--controllers-arg: %w", err))
	}
	if f.kubeconfigOut != "" {
		if f.kubeconfigOut, err = filepath.Abs(f.kubeconfigOut); err != nil {
			return coded(exitUsage, err)
		}
	}
	// Before anything is made, so that a signal always cleans up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s, err := supervise.New(supervise.Options{
		DataDir: f.dataDir,
		Settings: roles.Settings{
			FeatureGates:     f.featureGates,
			RuntimeConfig:    f.runtimeConfig,
			Fsync:            f.fsync,
			NodeMonitorGrace: f.monitorGrace(spec.Count()),
			APIServerArgs:    f.apiServerArgs,
			ControllersArgs:  f.controllersArgs,
		},
		NodesArgs:       f.args(),
		NodeSpec:        raw,
		KubeconfigOut:   f.kubeconfigOut,
		RestartChildren: f.restartChildren,
		ReadyTimeout:    f.readyTimeout,
		Progress:        os.Stderr,
	})
	if err != nil {
		return coded(exitFailed, err)
	}
	err = serve(ctx, s)
	if closeErr := s.Close(); closeErr != nil {
		err = errors.Join(err, coded(exitFailed, closeErr))
	}
	return err
}

// serve runs the cluster until ctx ends.
func serve(ctx context.Context, s *supervise.Supervisor) error {
	if err := s.Serve(ctx); err != nil {
		return coded(exitFailed, err)
	}
	ready, err := s.Start(ctx)
	if err != nil {
		if ctx.Err() != nil {
			// Told to stop before it was ready.
			return nil
		}
		return coded(exitNotReady, err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return coded(exitFailed, fmt.Errorf("print ready line: %w", err))
	}
	fmt.Fprintf(os.Stderr, "ready after %.1fs: %d nodes\nexport KUBECONFIG=%s\n", ready.StartupSeconds, ready.Nodes, ready.Kubeconfig)
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "stopping")
	return nil
}

// roleCommand is how the supervisor starts its children.
func roleCommand() *cobra.Command {
	return quiet(&cobra.Command{
		Use:    "role ROLE -- FLAGS",
		Short:  "Be one child process (internal)",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			supervise.FollowParent()
			if args[0] == roles.Nodes {
				return nodesRole(args[1:])
			}
			os.Exit(roles.Run(args[0], args[1:]))
			return nil
		},
	})
}

func nodesRole(args []string) error {
	var f nodeFlags
	var kubeconfig string
	fs := pflag.NewFlagSet(roles.Nodes, pflag.ContinueOnError)
	f.add(fs)
	fs.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	if err := fs.Parse(args); err != nil {
		return coded(exitUsage, err)
	}
	spec, _, err := f.spec()
	if err != nil {
		return coded(exitUsage, err)
	}
	stages, err := fakenodes.StagesByName(f.podStages)
	if err != nil {
		return coded(exitUsage, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return coded(exitFailed, fakenodes.Run(ctx, fakenodes.Options{
		Kubeconfig: kubeconfig,
		Spec:       spec,
		Stages:     stages,
		Admission:  f.admission,
		Lease:      f.lease(spec.Count()),
	}))
}

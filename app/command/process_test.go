// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// mainEnv makes this test binary the program itself: logs, metrics and feature gates are those of a process.
const mainEnv = "KUMIKI_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		os.Exit(Main())
	}
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // many command lines in this process
	os.Exit(m.Run())
}

// program is the program as a process, started under the first word of a command line.
func program(line ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: os.Args[0], Args: line, Env: append(os.Environ(), mainEnv+"=1", "KUBECONFIG=/does/not/exist"),
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
}

// TestWrongFlagsEndTheProcess: with exit code 1 and upstream's words (conformance/flags compares both), before
// anything is asked of the cluster.
func TestWrongFlagsEndTheProcess(t *testing.T) {
	for _, tt := range []struct{ line, wrong string }{
		{"--bogus", "unknown flag: --bogus"},
		{"--leader-elect=maybe", `invalid argument "maybe" for "--leader-elect" flag`},
		{"extra", `"kube-scheduler" does not take any arguments, got ["extra"]`},
		{"--secure-port=-3", "--secure-port -3 must be between 0 and 65535, inclusive. 0 for turning off secure port"},
		{"--feature-gates=Nope=true", "unrecognized feature gate: Nope"},
		{"--feature-gates=DRAAdminAccess=false",
			"cannot set feature gate DRAAdminAccess to false, feature is locked to true"},
		{"--emulated-version=1.30", "emulation version 1.30 is not between [1.34, 1.37.0]"},
		{"--logging-format=xml", `Invalid value: "xml": Unsupported log format`},
		{"--vmodule=a=1 --logging-format=json", "vmodule: Forbidden: Only supported for text log format"},
		{"--log-text-split-stream", "Feature LoggingAlphaOptions is disabled"},
		{"--show-hidden-metrics-for-version=1.30",
			"must be omitted or have the value '1.36'; only the previous minor version is allowed"},
		{"--allow-metric-labels=a=b", "metrics.allowListMapping: Invalid value"},
		{"--version=v1.30.0", `version "v1.30.0" must match major/minor/patch of default version "v1.37.1"`},
		{"--tls-min-version=VersionTLS09 --kubeconfig=KUBECONFIG", "unknown tls version"},
		{"--tls-cipher-suites=NOPE --kubeconfig=KUBECONFIG", "Cipher suite NOPE not supported or doesn't exist"},
	} {
		c := program(append([]string{"kube-scheduler"},
			strings.Fields(strings.ReplaceAll(tt.line, "KUBECONFIG", unreachable(t)))...)...)
		var errs bytes.Buffer
		c.Stderr = &errs
		err := c.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errs.String(), tt.wrong) {
			t.Errorf("%s: ended with %v, want exit code 1 and %q:\n%s", tt.line, err, tt.wrong, errs.String())
		}
	}
}

// TestVersion: upstream's line, with our version behind the word that scripts read.
func TestVersion(t *testing.T) {
	for line, want := range map[string]string{
		"--version": "Kubernetes v1.37.1 (kumiki development)\n", "--version=true": "Kubernetes v1.37.1 (",
		"--version=v1.37.1-mine --version": "Kubernetes v1.37.1-mine (",
		"--version=raw":                    `version.Info{Major:"1", Minor:"37", EmulationMajor:"", EmulationMinor:"", MinCompatibilityMajor:"", MinCompatibilityMinor:"", GitVersion:"v1.37.1",`,
	} {
		out, err := program(append([]string{"kube-scheduler"}, strings.Fields(line)...)...).Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
}

// unreachable returns a kubeconfig of an API server that does not exist.
func unreachable(t *testing.T) string { return kubeconfigAt(t, "http://127.0.0.1:1") }

// kubeconfigAt is a file that names an API server.
func kubeconfigAt(t *testing.T, url string) string {
	return file(t, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, url))
}

// served is a scheduler that answers and knows no API server.
type served struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  bytes.Buffer // to be read after the end, as errs
	errs bytes.Buffer
	gone chan error
	url  string
}

func serveWith(t *testing.T, line ...string) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := &served{t: t, gone: make(chan error, 1), url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	s.cmd = program(append([]string{"kube-scheduler", "--kubeconfig=" + unreachable(t), "--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--authentication-skip-lookup",
		"--authorization-always-allow-paths=/livez,/metrics,/flagz,/statusz"}, line...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.gone <- s.cmd.Wait() }()
	for { // the test's time limit is the only one
		if _, err := s.get("/livez", &tls.Config{}); err == nil {
			return s
		}
		select {
		case err := <-s.gone:
			t.Fatalf("the scheduler ended with %v:\n%s", err, s.errs.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *served) get(path string, c *tls.Config) (string, error) {
	c.InsecureSkipVerify = true // the certificate was made at start
	client := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
	res, err := client.Get(s.url + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, body)
	}
	return string(body), err
}

// end stops the scheduler and returns what it said.
func (s *served) end() string {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := <-s.gone; err != nil {
		s.t.Errorf("the scheduler ended with %v", err)
	}
	return s.errs.String()
}

// TestAnEmulatedVersionCounts: /metrics has the gates of --emulated-version=1.36, and no warning names them.
func TestAnEmulatedVersionCounts(t *testing.T) {
	s := serveWith(t, "--emulated-version=1.36")
	text, err := s.get("/metrics", &tls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{`kubernetes_feature_enabled{name="StorageCapacityScoring",stage="ALPHA"} 0`,
		`kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 0`,
		`kubernetes_feature_enabled{name="NativeHistograms",stage="ALPHA"} 0`} {
		if !strings.Contains(text, series) {
			t.Errorf("/metrics lacks %s", series)
		}
	}
	if said := s.end(); strings.Contains(said, "feature gates change nothing") {
		t.Errorf("the scheduler warns: %s", said)
	}
}

// TestJSONLogsAndTLS13: --logging-format=json leaves no other line, warnings included; --v tells the flags;
// --tls-min-version, --disabled-metrics and --feature-gates count.
func TestJSONLogsAndTLS13(t *testing.T) {
	s := serveWith(t, "--logging-format=json", "-v=1", "--tls-min-version=VersionTLS13",
		"--disabled-metrics=scheduler_cache_size",
		"--feature-gates=OpportunisticBatching=true,SchedulerAsyncPreemption=false,DRAFractionalCapacityRange=false,"+
			"ComponentStatusz=false",
		"--tls-cipher-suites=")
	if _, err := s.get("/livez", &tls.Config{MaxVersion: tls.VersionTLS12}); err == nil ||
		!strings.Contains(err.Error(), "protocol version") {
		t.Errorf("with TLS 1.2 the answer was %v", err)
	}
	text, err := s.get("/metrics", &tls.Config{})
	if err != nil || strings.Contains(text, "\nscheduler_cache_size") || !strings.Contains(text, "\nscheduler_") {
		t.Errorf("a metric that was turned off is there, or none is: %v", err)
	}
	// /metrics tells what holds here, not what was asked for.
	for _, series := range []string{`kubernetes_feature_enabled{name="SchedulerAsyncPreemption",stage="BETA"} 1`,
		`kubernetes_feature_enabled{name="OpportunisticBatching",stage="BETA"} 0`} {
		if !strings.Contains(text, series) {
			t.Errorf("/metrics lacks %s", series)
		}
	}
	// The text between name and value is random, so that no client parses the page.
	shown := regexp.MustCompile(`\ntls-min-version\W+VersionTLS13\n`)
	if text, err := s.get("/flagz", &tls.Config{}); err != nil || !shown.MatchString(text) {
		t.Errorf("/flagz: %v: %s", err, text)
	}
	if text, err := s.get("/statusz", &tls.Config{}); err == nil {
		t.Errorf("/statusz is there without its gate: %s", text)
	}
	said := s.end()
	for line := range strings.Lines(said) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	for _, part := range []string{"Warning: deprecated flags: --kubeconfig",
		"Warning: these feature gates change nothing here", `FLAG: --tls-min-version=\"VersionTLS13\"`} {
		if !strings.Contains(said, part) {
			t.Errorf("the log lacks %q:\n%s", part, said)
		}
	}
}

// TestCiphersAndVmodule: --tls-cipher-suites is all that TLS 1.2 may use, --vmodule makes one file talk, and
// --show-hidden-metrics-for-version takes the version before.
func TestCiphersAndVmodule(t *testing.T) {
	s := serveWith(t, "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "--vmodule=flags=1",
		"--show-hidden-metrics-for-version=1.36")
	only := func(suite uint16) *tls.Config {
		return &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}
	}
	if _, err := s.get("/livez", only(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)); err != nil {
		t.Error(err)
	}
	if _, err := s.get("/livez", only(tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384)); err == nil {
		t.Error("a suite that was not named is taken")
	}
	if text, err := s.get("/metrics", &tls.Config{}); err != nil || !strings.Contains(text, "\nscheduler_cache_size") {
		t.Errorf("no metrics: %v", err)
	}
	if text, err := s.get("/statusz", &tls.Config{}); err != nil || !strings.Contains(text, "kube-scheduler statusz") {
		t.Errorf("/statusz: %v: %s", err, text)
	}
	said := s.end()
	if !strings.Contains(said, `flags.go`) || !strings.Contains(said, `FLAG: --vmodule="flags=1"`) {
		t.Errorf("--vmodule did nothing:\n%s", said)
	}
	if !strings.Contains(said, "\nwarning: deprecated flags: --kubeconfig") &&
		!strings.HasPrefix(said, "warning: deprecated flags: --kubeconfig") {
		t.Errorf("no warning:\n%s", said)
	}
}

// TestTheEmulatedVersionIsReported by /statusz and /version. It would fail with pages that tell the version of the
// libraries.
func TestTheEmulatedVersionIsReported(t *testing.T) {
	s := serveWith(t, "--emulated-version=1.35", "--feature-gates=ComponentStatusz=true",
		"--authorization-always-allow-paths=/version")
	page := regexp.MustCompile(`(?s)Binary version\W+1\.37\.1.*Emulation version\W+1\.35`)
	if text, err := s.get("/statusz", &tls.Config{}); err != nil || !page.MatchString(text) {
		t.Errorf("/statusz: %v: %s", err, text)
	}
	var reported struct{ Minor, EmulationMinor string }
	text, err := s.get("/version", &tls.Config{})
	if json.Unmarshal([]byte(text), &reported); err != nil || reported.Minor != "37" || reported.EmulationMinor != "35" {
		t.Errorf("/version: %v: %s", err, text)
	}
	s.end()
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// refusedKubeconfigs: the API server refuses what a kubeconfig contains, or another one is at its address. The log says
// in one line which file it is, who, and what is wrong; the process waits, since that may be mended without a restart,
// and ends with 0 when it is asked to.
func refusedKubeconfigs(t *testing.T, cluster *testcluster.Cluster) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, cluster *testcluster.Cluster, c *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo)
		want   string
		file   bool // the line names the kubeconfig
	}{
		"expired": {func(t *testing.T, cluster *testcluster.Cluster, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			*user = *userOf(t, cluster, "system:kube-scheduler", time.Unix(1e9, 0))
		}, `the client certificate of user \"system:kube-scheduler\" expired at 2001-09-09T01:46:40Z`, true},
		"another cluster": {func(t *testing.T, _ *testcluster.Cluster, c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			c.CertificateAuthority, c.CertificateAuthorityData = "", otherAuthority(t)
		}, "signed by another authority than the kubeconfig names", true},
		"wrong token": {func(_ *testing.T, _ *testcluster.Cluster, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			*user = clientcmdapi.AuthInfo{Token: "of-another-cluster"}
		}, "its token is not accepted", true},
		"no permissions": {func(t *testing.T, cluster *testcluster.Cluster, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			*user = *userOf(t, cluster, "without-rights", time.Now().Add(time.Hour))
		}, `User \"without-rights\" cannot list resource \"pods\"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := clientcmd.LoadFromFile(cluster.SchedulerKubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			in := file.Contexts[file.CurrentContext]
			tt.change(t, cluster, file.Clusters[in.Cluster], file.AuthInfos[in.AuthInfo])
			changed := filepath.Join(t.TempDir(), "kubeconfig")
			if err := clientcmd.WriteToFile(*file, changed); err != nil {
				t.Fatal(err)
			}
			p := startProcess(t, changed, profileEnv+"=refused")
			eventually(t, "the log says what is wrong", func() (bool, string) {
				for said := range strings.Lines(p.log.String()) {
					if strings.Contains(said, tt.want) && (!tt.file || strings.Contains(said, changed)) {
						return true, ""
					}
				}
				return false, p.log.String()
			})
			p.stop()
			if code := p.cmd.ProcessState.ExitCode(); code != 0 || p.started() != 1 {
				t.Errorf("it was started %d times, and ended with %d", p.started(), code)
			}
			if said := strings.Count(p.log.String(), "The API server refuses the kubeconfig"); tt.file && said != 1 {
				t.Errorf("the line is there %d times:\n%s", said, p.log.String())
			}
		})
	}
}

// userOf signs a client certificate with the authority of a cluster.
func userOf(t *testing.T, cluster *testcluster.Cluster, name string, until time.Time) *clientcmdapi.AuthInfo {
	t.Helper()
	pki := filepath.Join(cluster.DataDir, "pki")
	ca, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	cert, key := sign(t, &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, issuer, ca.PrivateKey)
	return &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
}

// otherAuthority is the certificate of an authority that signed nothing.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	cert, _ := sign(t, &x509.Certificate{SerialNumber: big.NewInt(8), Subject: pkix.Name{CommonName: "other"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}, nil, nil)
	return cert
}

// sign makes a certificate and its key in PEM. Without an issuer it signs itself.
func sign(t *testing.T, of, issuer *x509.Certificate, by crypto.PrivateKey) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if issuer == nil {
		issuer, by = of, own
	}
	der, err := x509.CreateCertificate(rand.Reader, of, issuer, &own.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

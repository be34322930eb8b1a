package manifests

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes from the chart")

const (
	chartDir  = "../../deploy/helm/mayfly"
	plainDir  = "../../deploy/kubernetes/"
	plainHead = "# Made from the Helm chart beside it, with its defaults: go -C tools/manifests test -run TestPlainManifests -update\n"
)

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the texts of the templates by their names, as helm install mayfly makes them. values is YAML.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	set, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	all, err := chartutil.ToRenderValues(c, set, chartutil.ReleaseOptions{Name: "mayfly", Namespace: "default", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.Render(c, all)
	short := map[string]string{}
	for name, text := range texts {
		short[strings.TrimPrefix(name, "mayfly/templates/")] = text
	}
	return short, err
}

// objects are the decoded documents of a manifest. Unknown fields, and kinds that the chart does not use, fail the test.
type objects struct {
	services  []corev1.Service
	accounts  []corev1.ServiceAccount
	sets      []appsv1.StatefulSet
	deploys   []appsv1.Deployment
	budgets   []policyv1.PodDisruptionBudget
	documents int
}

func decode(t *testing.T, text string) (o objects) {
	t.Helper()
	for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		o.documents++
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		var err error
		switch meta.APIVersion + " " + meta.Kind {
		case "v1 Service":
			o.services, err = one(o.services, document)
		case "v1 ServiceAccount":
			o.accounts, err = one(o.accounts, document)
		case "apps/v1 StatefulSet":
			o.sets, err = one(o.sets, document)
		case "apps/v1 Deployment":
			o.deploys, err = one(o.deploys, document)
		case "policy/v1 PodDisruptionBudget":
			o.budgets, err = one(o.budgets, document)
		default:
			t.Fatalf("unexpected %s %s", meta.APIVersion, meta.Kind)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
	}
	return o
}

func one[T any](list []T, document string) ([]T, error) {
	var object T
	err := yaml.UnmarshalStrict([]byte(document), &object)
	return append(list, object), err
}

// everything sets each value of the chart to something else than its default.
const everything = `
image: {repository: registry.example/mayfly, tag: v1, pullPolicy: Always, pullSecrets: [pull]}
serve:
  args: [--stream-retention, 48h]
  env: [{name: MAYFLY_LOG_FORMAT, value: json}]
  credentialsSecret: keys
  service: {type: LoadBalancer, port: 80, annotations: {a: b}}
  persistence: {size: 20Gi, storageClass: fast}
  resources: {limits: {cpu: "2"}}
  podAnnotations: {a: b}
  nodeSelector: {a: b}
  tolerations: [{key: a, operator: Exists}]
  affinity: {nodeAffinity: {}}
guard:
  enabled: true
  replicas: 3
  tables: [sessions, orders]
  endpoint: http://alternator:8000
  region: eu-central-1
  args: [--max-wcu, "200"]
  env: [{name: MAYFLY_LOG_FORMAT, value: json}]
  credentialsSecret: aws
  serviceAccount: {annotations: {eks.amazonaws.com/role-arn: arn}}
  resources: {limits: {cpu: "2"}}
  podAnnotations: {a: b}
  nodeSelector: {a: b}
  tolerations: [{key: a, operator: Exists}]
  affinity: {nodeAffinity: {}}
`

// TestChartUsesEveryValue renders the chart with every value set, and with each taken away: that must change the output.
func TestChartUsesEveryValue(t *testing.T) {
	full, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"serve.yaml": 2, "guard.yaml": 3} {
		o := decode(t, full[name])
		if o.documents != want {
			t.Errorf("%s: got %d documents, want %d", name, o.documents, want)
		}
		checkObjects(t, o)
	}
	all := values(t, everything)
	paths := leaves(all, nil)
	if defaults := leaves(values(t, string(read(t, chartDir+"/values.yaml"))), nil); len(paths) < len(defaults)-1 { // serve.enabled stays
		t.Errorf("%d values are set here, and the chart has %d", len(paths), len(defaults))
	}
	for _, path := range paths {
		if slices.Equal(path, []string{"guard", "enabled"}) || slices.Equal(path, []string{"guard", "tables"}) {
			continue
		}
		less := values(t, everything)
		parent := less
		for _, key := range path[:len(path)-1] {
			parent = parent[key].(map[string]any)
		}
		delete(parent, path[len(path)-1])
		text, err := yaml.Marshal(less)
		if err != nil {
			t.Fatal(err)
		}
		got, err := render(t, string(text))
		if err != nil {
			t.Fatalf("without %v: %v", path, err)
		}
		if got["serve.yaml"] == full["serve.yaml"] && got["guard.yaml"] == full["guard.yaml"] {
			t.Errorf("%s has no effect", strings.Join(path, "."))
		}
	}
}

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// leaves returns the paths of the values that the chart documents: two or three levels down.
func leaves(of map[string]any, at []string) (paths [][]string) {
	for key, value := range of {
		path := append(slices.Clone(at), key)
		inner, is := value.(map[string]any)
		if is && (len(path) == 1 || slices.Contains([]string{"service", "persistence", "serviceAccount"}, key)) {
			paths = append(paths, leaves(inner, path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func TestChartRefusesWrongValues(t *testing.T) {
	for _, wrong := range []string{
		"replicas: 3",
		"serve: {replicas: 3}",
		"serve: {service: {port: http}}",
		"serve: {persistence: {size: big}}",
		"guard: {enabled: true}", // no table
		"guard: {enabled: true, tables: [a b]}",
		"guard: {replicas: 0}",
		"image: {pullPolicy: Sometimes}",
	} {
		if _, err := render(t, wrong); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

func TestChartNotes(t *testing.T) {
	both, err := render(t, "guard: {enabled: true, tables: [sessions, orders]}")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http://mayfly.default:8000", "service/mayfly 8000:8000", "set serve.credentialsSecret", "of sessions, orders.", "deployment/mayfly-guard"} {
		if !strings.Contains(both["NOTES.txt"], want) {
			t.Errorf("%q is missing in\n%s", want, both["NOTES.txt"])
		}
	}
	guard, err := render(t, "{serve: {enabled: false, credentialsSecret: x}, guard: {enabled: true, tables: [sessions]}}")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(guard["serve.yaml"]) != "" || strings.Contains(guard["NOTES.txt"], "port-forward") {
		t.Errorf("serve is off, and the chart renders\n%s%s", guard["serve.yaml"], guard["NOTES.txt"])
	}
}

// TestPlainManifests holds deploy/kubernetes against the chart.
func TestPlainManifests(t *testing.T) {
	texts, err := render(t, "guard: {enabled: true, tables: [sessions]}")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"serve.yaml": 2, "guard.yaml": 3} {
		text := plainHead + strings.TrimSpace(texts[name]) + "\n"
		if *update {
			if err := os.WriteFile(plainDir+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, plainDir+name); !bytes.Equal(got, []byte(text)) {
			t.Errorf("%s differs from the chart; run go -C tools/manifests test -run TestPlainManifests -update", name)
		}
		o := decode(t, text)
		if o.documents != want {
			t.Errorf("%s: got %d documents, want %d", name, o.documents, want)
		}
		checkObjects(t, o)
	}
	entries, err := fs.Glob(os.DirFS(plainDir), "*.yaml")
	if err != nil || len(entries) != 2 {
		t.Errorf("%s has %q, %v", plainDir, entries, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkObjects checks the references between objects, and how safe their pods are.
func checkObjects(t *testing.T, o objects) {
	t.Helper()
	for _, s := range o.sets {
		checkPod(t, s.Name, s.Spec.Template, s.Spec.Selector)
		claims := map[string]bool{}
		for _, c := range s.Spec.VolumeClaimTemplates {
			claims[c.Name] = !c.Spec.Resources.Requests.Storage().IsZero()
		}
		for _, m := range s.Spec.Template.Spec.Containers[0].VolumeMounts {
			if !claims[m.Name] {
				t.Errorf("%s mounts %s, which no claim has", s.Name, m.Name)
			}
		}
		if *s.Spec.Replicas != 1 {
			t.Errorf("%s has %d replicas", s.Name, *s.Spec.Replicas)
		}
		for _, service := range o.services {
			if s.Spec.ServiceName != service.Name || !selects(service.Spec.Selector, s.Spec.Template.Labels) {
				t.Errorf("service %s does not select the pods of %s", service.Name, s.Name)
			}
			for _, p := range service.Spec.Ports {
				if p.TargetPort.StrVal != s.Spec.Template.Spec.Containers[0].Ports[0].Name {
					t.Errorf("service %s: no container has the port %s", service.Name, p.TargetPort.StrVal)
				}
			}
		}
		if len(o.services) != 1 {
			t.Errorf("%d services", len(o.services))
		}
	}
	for _, d := range o.deploys {
		checkPod(t, d.Name, d.Spec.Template, d.Spec.Selector)
		for _, b := range o.budgets {
			if !selects(b.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
				t.Errorf("budget %s does not select the pods of %s", b.Name, d.Name)
			}
		}
		if len(o.accounts) != 1 || o.accounts[0].Name != d.Spec.Template.Spec.ServiceAccountName {
			t.Errorf("%s runs as %s, which is none of %v", d.Name, d.Spec.Template.Spec.ServiceAccountName, o.accounts)
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func checkPod(t *testing.T, name string, pod corev1.PodTemplateSpec, selector *metav1.LabelSelector) {
	t.Helper()
	if !selects(selector.MatchLabels, pod.Labels) {
		t.Errorf("%s does not select its own pods", name)
	}
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("%s has %d containers", name, len(pod.Spec.Containers))
	}
	c := pod.Spec.Containers[0]
	s := pod.Spec.SecurityContext
	if pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks || !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile == nil {
		t.Errorf("%s: the pod has service links, or rights that it does not need: %+v", name, s)
	}
	if own := c.SecurityContext; !*own.ReadOnlyRootFilesystem || *own.AllowPrivilegeEscalation || !slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: the container has rights that it does not need: %+v", name, own)
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Errorf("%s: a probe is missing, or asks another port than %s", name, c.Ports[0].Name)
		}
	}
}

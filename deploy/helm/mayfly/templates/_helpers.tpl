{{/* The release's name, with "mayfly" in it. */}}
{{- define "mayfly.name" -}}
{{- if contains "mayfly" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-mayfly" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels of a part; call it with (list . "serve"). */}}
{{- define "mayfly.labels" -}}
app.kubernetes.io/name: mayfly
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Fields of a pod that both parts share; call it with (list . .Values.serve). */}}
{{- define "mayfly.pod" -}}
{{- $root := index . 0 }}{{- $part := index . 1 -}}
# A Service named mayfly would otherwise set MAYFLY_PORT in this pod.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Fields of a container, beside its name, that both parts share; call it with (list . .Values.serve). */}}
{{- define "mayfly.container" -}}
{{- $root := index . 0 }}{{- $part := index . 1 -}}
image: {{ $root.Values.image.repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources: {{- toYaml $part.resources | nindent 2 }}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /healthz, port: http }
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* A hook's Job that runs one module of the operator's image. Arguments: root, module, account, seconds. */}}
{{- define "sandyard.jobSpec" }}
spec:
  backoffLimit: 2
  activeDeadlineSeconds: {{ .seconds }}
  template:
    metadata:
      labels:
        {{- include "sandyard.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .module | replace "_" "-" }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with .root.Values.operator.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.operator.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.operator.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "sandyard.podSecurity" .root | nindent 8 }}
      containers:
        - name: {{ .module | replace "_" "-" }}
          image: {{ include "sandyard.operatorImage" .root }}
          imagePullPolicy: {{ .root.Values.operator.imagePullPolicy }}
          command: [python, -I, -m, sandyard_operator.{{ .module }}]
          env:
            - name: SANDYARD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
          resources:
            requests:
              cpu: 50m
              memory: 64Mi
            limits:
              memory: 256Mi
          securityContext:
            {{- include "sandyard.containerSecurity" .root | nindent 12 }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 64Mi
{{- end }}

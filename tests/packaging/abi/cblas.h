/* What of a CBLAS decides how it is called: the width of its integers. */
#if defined(WIDE_BLAS_INTEGERS)
typedef long long blas_integer;
#else
typedef int blas_integer;
#endif
enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };
void cblas_sgemm(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blas_integer,
                 blas_integer, blas_integer, float, const float*, blas_integer, const float*,
                 blas_integer, float, float*, blas_integer);
void cblas_dgemm(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blas_integer,
                 blas_integer, blas_integer, double, const double*, blas_integer, const double*,
                 blas_integer, double, double*, blas_integer);
